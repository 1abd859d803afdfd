"""What the pages print for a shell and for collection files is taken as it stands there: each command by the command
line, each file by `init` or `explain`, each part of a file within the rest of one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from tests.cli.conftest import Shell
from tidemark.cli import app
from tidemark.config.collection_file import parse

PROJECT = Path(__file__).parents[2]
PAGES = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "docs/README.md")),
    *sorted((PROJECT / "docs").glob("how-to/*.md")),
]
COLLECTIONS = PROJECT / "include" / "collections"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
_LANDS = """\
start: 2024-01-01
time: {column: at}
source: {path: "{{ landing }}/x/{{ ds }}/*.csv", format: csv, envelope: append}
"""
REST = {
    "add-a-task.md": (COLLECTIONS / "flights.yaml").read_text(encoding="utf-8"),
    "batches.md": f"name: x\nkey: [id]\ncolumns: {{id: string, at: timestamp}}\n{_LANDS}",
    "last-tuesday-was-wrong.md": f"name: x\nkey: [id]\ncolumns: {{id: string, at: timestamp}}\n{_LANDS}",
    "choose-types.md": f"name: x\n{_LANDS}",
    "check-what-comes-in.md": "name: x\nkey: [id]\nvalue: [status, code, paid_at]\n"
    f"columns: {{id: string, status: string, code: string, paid_at: timestamp, at: timestamp}}\n{_LANDS}",
    "keep-history.md": f"name: x\nkey: [id]\ncolumns: {{id: string, at: timestamp}}\n{_LANDS}",
    "lay-out-by-time.md": "name: x\nkey: [id]\nvalue: [measured]\n"
    f"columns: {{id: string, measured: timestamp, at: timestamp}}\n{_LANDS}",
    "own-dags.md": f"name: x\nkey: [id]\ncolumns: {{id: string, at: timestamp}}\n{_LANDS}",
    "publish-tables.md": (COLLECTIONS / "flights.yaml").read_text(encoding="utf-8"),
    "tell-people.md": (COLLECTIONS / "flights.yaml").read_text(encoding="utf-8"),
    "windows.md": (COLLECTIONS / "delays_by_hour.yaml").read_text(encoding="utf-8"),
}
"""What stands around the parts of files that pages show."""


def blocks(language: str) -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for of, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if of == language:
                yield page, block


WHOLE = [(page, block) for page, block in blocks("yaml") if block.startswith("name:")]
PARTS = [(page, block) for page, block in blocks("yaml") if not block.startswith("name:")]
LINES = [
    (page, line)
    for page in PAGES
    for line in _INDENTED.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    if re.match(r"(retention|live_batches|compact_ahead|dag): ", line)
]


def id_of(example: object) -> str:
    return example.name if isinstance(example, Path) else str(example).splitlines()[0][:40]


@pytest.fixture
def flights(shell: Shell) -> Shell:
    """The collections of the demo that land, and that of the tutorial, whose files are beside those of the pages."""
    for name in ("flights", "carriers"):
        path = shell.declared((COLLECTIONS / f"{name}.yaml").read_text(encoding="utf-8"))
        shell.ok("init", path)
    (sales,) = (block for _, block in WHOLE if block.startswith("name: sales\n"))
    shell.ok("init", shell.declared(sales))
    return shell


@pytest.mark.parametrize(("page", "block"), WHOLE, ids=id_of)
def test_a_whole_file_is_taken(flights: Shell, page: Path, block: str) -> None:
    path = flights.declared(block)
    if "\nfrom:" in block:
        name = block.split()[1]
        assert f"{name} is computed by key" in flights.ok("explain", path).out
    elif block.startswith("name: flights"):
        parse(path)  # created as the demo has it already
    else:
        assert flights.ok("init", path).out.startswith(("created: ", "nothing to do: "))


@pytest.mark.parametrize(("page", "block"), [*PARTS, *LINES], ids=id_of)
def test_a_part_of_a_file_is_taken_within_the_rest(shell: Shell, page: Path, block: str) -> None:
    """Lines that are indented stand within `windows`, and one in place of the other."""
    rest = REST[page.name]
    for said in block.splitlines() if block.startswith(" ") else [block]:
        within = rest.replace("windows:\n", f"windows:\n{said}\n")
        parse(shell.declared(within if said.startswith(" ") else f"{rest}\n{said}"))


def commands() -> Iterator[tuple[Path, str]]:
    """The lines of the pages that begin with our command, and what stands in backquotes so with more than its name."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"^(?:    )?(?:\$ )?(?:tools/run )?(tidemark .*?)(?: +# .*)?$", text, re.MULTILINE)
        within = re.findall(r"`(?:tools/run )?(tidemark [a-z-]+ [^`\n]*)`", text)
        said = [line for line in dict.fromkeys([*lines, *within]) if not re.search("…|--help| tally ", line)]
        yield from ((page, line) for line in said)


@pytest.mark.parametrize(("page", "line"), list(commands()), ids=id_of)
def test_a_command_is_one_of_ours_with_these_options(page: Path, line: str) -> None:
    _, *words = shlex.split(line)
    command, context = get_command(app), None
    while words and hasattr(command, "resolve_command"):
        context = command.make_context(command.name, words, parent=context)
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(command.name, words, parent=context)


def test_every_target_that_is_named_is_one() -> None:
    made = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"^([a-z-]+):", made, re.MULTILINE), "help"}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"(?:`|^    )make ([a-z]+(?:-[a-z0-9]+)?)", text, re.MULTILINE)
        unknown = {name for name in named if name not in targets and not (PROJECT / "tests" / name[5:]).is_dir()}
        assert unknown == set(), page

"""What docs/how-to/erase-a-person.md says is done: afterwards no file has the person."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Shell, a_shell

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "erase-a-person.md").read_text(encoding="utf-8")
PEOPLE = """\
name: people
key: [person]
value: [city, since]
columns: {person: string, city: string, since: timestamp, at: timestamp}
start: 2024-01-01
end: 2024-01-04
time: {column: at}
source: {path: "{{ landing }}/people/{{ ds }}/*.csv", format: csv, envelope: upsert}
"""
BY_DAY = """\
name: people_by_day
from: people
windows: {by: [city], on: since, tumbling: 1d}
aggregates: {people: count, last: {max: person}}
"""
LANDED = {
    "2024-01-01": ["ann,Faro", "zoe,Braga"],
    "2024-01-02": ["zoe,Porto", "bob,Faro"],
    "2024-01-03": ["bob,Braga"],
}


def land(shell: Shell, *, without: str = " ") -> None:
    for day, lines in LANDED.items():
        rows = [f"{line},{day}T10:00:00Z,{day}T10:00:00Z" for line in lines if not line.startswith(without)]
        file = shell.landing / "people" / day / "a.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(["person,city,since,at", *rows, ""]))


def run(shell: Shell, files: dict[str, str], block: str) -> None:
    """Run the commands of a block of the page, with this shell's files; what is computed goes through its steps."""
    for line in block.splitlines():
        _, *words = shlex.split(line)
        words = [files.get(Path(word).stem, word) if word.endswith(".yaml") else word for word in words]
        shell.ok(*words, *(["--collections", str(shell.files)] if words[0] == "drop" else []))
        if words[0] == "correct":
            for step in (("gate", "unsealed"), ("seal",), ("gate", "frontier"), ("drain",), ("gate", "trace")):
                shell.ok(step[0], words[1], *step[1:])


def test_a_person_is_in_no_file_after_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = replace(a_shell(tmp_path), runner=None)
    drops, builds = re.findall(r"^```\n(tidemark.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    land(shell)
    files = {text.split()[1]: shell.declared(text) for text in (PEOPLE, BY_DAY)}
    run(shell, files, builds)
    (look,) = re.findall(r"^```python\n(.*?)^for place", PAGE, re.MULTILINE | re.DOTALL)
    page: dict[str, object] = {}
    exec(compile(look, "erase-a-person.md", "exec"), page)

    def having(folder: Path) -> set[str]:
        return {file.relative_to(folder).parts[0] for file in page["files_with"]("zoe", folder)}  # type: ignore[operator]

    assert having(shell.root) == {"people", "people_by_day"}
    land(shell, without="zoe")
    for file in files.values():
        Path(file).unlink()
    run(shell, files, drops)
    for text in (PEOPLE, BY_DAY):
        shell.declared(text)
    run(shell, files, builds)
    assert (having(shell.root), having(shell.landing), having(shell.files)) == (set(), set(), set())
    assert {row["person"] for row in shell.json("as-of", "people")["rows"]} == {"ann", "bob"}
    assert {row["last"] for row in shell.json("as-of", "people_by_day")["rows"]} == {"ann", "bob"}

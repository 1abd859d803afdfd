"""How-tos for Python do what they say, all of it as it is printed, from the empty folder on."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.inprocess import InProcessRunner
from tidemark.cli import app
from tidemark.cli.command import Settings

pytestmark = pytest.mark.pure
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)


MADE_ON = {"ask-in-sql.md": "read-from-python.md"}
"""The page on which what a page reads is made."""


def in_a_shell(block: str) -> None:
    """What the page has for a shell: all but its commands of Tidemark by one, those here, without Spark."""
    first = re.search(r"^tidemark ", block, re.MULTILINE)
    assert first is not None
    if block[: first.start()]:
        subprocess.run(["sh", "-eu", "-c", block[: first.start()]], check=True)
    for line in block[first.start() :].splitlines():
        program, *words = shlex.split(line)
        assert program == "tidemark"
        done = CliRunner().invoke(app, words, obj=Settings(runner=InProcessRunner))
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("page", "examples"),
    [("read-from-python.md", 20), ("append-rows.md", 15), ("latest-rows.md", 12), ("ask-in-sql.md", 16)],
)
def test_the_page_shows_what_happens(page: str, examples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    names: dict[str, object] = {}
    runner, parser = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), doctest.DocTestParser()
    if (before := MADE_ON.get(page)) is not None:
        for language, block in BLOCK.findall((HOW_TO / before).read_text()):
            if language == "sh":
                in_a_shell(block)
    for language, block in BLOCK.findall((HOW_TO / page).read_text()):
        if language == "sh":
            in_a_shell(block)
        else:
            test = parser.get_doctest(block, names, page, page, 0)
            runner.run(test, clear_globs=False)
            names = test.globs
    assert runner.failures == 0
    assert runner.tries >= examples

"""docs/how-to/read-from-python.md does what it says, all of it as it is printed, from the empty folder on."""

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
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-from-python.md"


def in_a_shell(block: str) -> None:
    """What the page has for a shell: all but its commands of Tidemark by one, those here, without Spark."""
    first = re.search(r"^tidemark ", block, re.MULTILINE)
    assert first is not None
    subprocess.run(["sh", "-eu", "-c", block[: first.start()]], check=True)
    for line in block[first.start() :].splitlines():
        program, *words = shlex.split(line)
        assert program == "tidemark"
        done = CliRunner().invoke(app, words, obj=Settings(runner=InProcessRunner))
        assert done.exit_code == 0, done.output


def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    [block] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    in_a_shell(block)
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried >= 20
    assert failed == 0

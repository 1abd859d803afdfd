"""Standard streams that are closed, full or no terminal, and a command that is interrupted."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.text import Text

import tidemark
from tests.cli.conftest import Shell
from tidemark.cli import output

COMMAND = [sys.executable, "-c", "from tidemark.cli import app; app()"]
QUESTIONS = (["status"], ["status", "events"], ["log", "events"], ["log", "events", "--json"], ["hold", "events"])


def answer(shell: Shell, words: Sequence[str], redirected: str) -> tuple[int, str, str]:
    """What a command of a process of its own answers, its streams redirected as a shell does it."""
    where = {"PYTHONPATH": str(Path(tidemark.__file__).parent.parent), "TIDEMARK_ROOT": str(shell.root)}
    script = f'exec "$@" {redirected}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, *words], capture_output=True, text=True, env=os.environ | where
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_nobody_listens(events: Shell, words: Sequence[str]) -> None:
    assert answer(events, words, ">&-") == (0, "", "")
    code, out, _ = answer(events, words, "2>&-")
    assert (code, bool(out)) == (0, True)


def test_an_error_that_nobody_hears_is_an_error(events: Shell) -> None:
    assert answer(events, ["status", "other"], ">&- 2>&-") == (1, "", "")
    assert answer(events, ["status", "other"], "2>&-") == (1, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_an_output_that_is_full_is_reported_in_one_line(events: Shell, words: Sequence[str]) -> None:
    assert answer(events, words, ">/dev/full") == (1, "", "error: No space left on device\n")


def test_an_interrupted_command_says_so(events: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("tidemark.jobs.queries.locate.check_root", interrupt)
    # A process that was started in the background of a script ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        said = events("drain", "events", "--json")
    finally:
        signal.signal(signal.SIGINT, before)
    assert said.code == 130
    assert said.err == "error: interrupted; what was committed stays, run it again for the rest\n"
    assert json.loads(said.out)["error"]["kind"] == "Interrupted"


def test_a_table_that_goes_through_a_pipe_is_not_folded() -> None:
    """Folding would hide things from grep."""
    stream = io.StringIO()
    wide = ["x" * 400, "2013-01-02T03:04:05.123456Z"]
    output.console(stream).print(output.table(wide, [wide]))
    assert Text(stream.getvalue()).plain.count(wide[0]) == 2
    assert stream.getvalue().count(wide[1]) == 2

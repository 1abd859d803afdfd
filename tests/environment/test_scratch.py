"""A session of tests that leaves something in the temporary folder has failed, and says what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

CLEAN = "def test_it(tmp_path): (tmp_path / 'file').touch()"
CARELESS = "import tempfile\ndef test_it(): tempfile.mkdtemp(prefix='forgotten-')"


@pytest.mark.parametrize(("code", "left"), [(CLEAN, False), (CARELESS, True)], ids=["clean", "careless"])
def test_what_a_session_leaves_is_named_and_fails_it(tmp_path: Path, code: str, left: bool) -> None:
    temporary, tests = tmp_path / "t", tmp_path / "tests"
    temporary.mkdir()
    tests.mkdir()
    (tests / "test_it.py").write_text(code)
    words = ["-m", "pytest", "-q", "--rootdir", PROJECT, "-c", PROJECT / "pyproject.toml", "-p", "tests.conftest"]
    environment = os.environ | {
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.pathsep.join(map(str, (PROJECT, PROJECT / "tests"))),
    }
    done = subprocess.run(
        [sys.executable, *words, tests], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if left else 0), done.stdout + done.stderr
    assert ("forgotten-" in done.stdout) is left
    assert bool(list(temporary.iterdir())) is left, "kept to be looked at, if at all"

"""Tests that measure: the better of two tries counts, both are printed, and nothing else is tried twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

PROJECT = Path(__file__).parents[2]
HEAD = """
import time
from pathlib import Path
import pytest
TRIES = Path(__file__).with_name("tries")

def nth():
    "Which try this is."
    with TRIES.open("a") as file:
        file.write("x")
    return len(TRIES.read_text())

"""


def tried(folder: Path, code: str) -> tuple[str, int]:
    """What pytest says of a file of tests, and how often one of them was tried."""
    file = folder / "test_it.py"
    file.write_text(HEAD + code)
    config = folder / "pytest.ini"
    config.write_text("[pytest]\nmarkers = measured\n")
    plugins = ["-p", "tests.support.measured", "-p", "timeout", "-p", "no:cacheprovider"]
    words = ["-m", "pytest", "-q", *plugins, "-c", str(config), str(file)]
    paths = {"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    env = os.environ | paths | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # of which loading takes longer than a test here
    done = subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
    tries = folder / "tries"
    return done.stdout, len(tries.read_text()) if tries.exists() else 0


def test_the_second_try_counts_where_the_first_failed_and_both_values_are_printed(tmp_path: Path) -> None:
    said, tries = tried(
        tmp_path,
        "@pytest.mark.measured\n"
        "def test_a(measure, tmp_path):\n"
        "    (tmp_path / 'file').touch(exist_ok=False)\n"
        "    measure.below('peak', 45 if nth() == 1 else 31, 40, 'MiB')\n",
    )
    assert tries == 2
    assert "1 passed" in said
    assert "failed" not in said.splitlines()[-1]
    assert "test_it.py::test_a, try 1: failed; peak 45.0 MiB, must be below 40.0 MiB; took " in said
    assert "test_it.py::test_a, try 2: passed; peak 31.0 MiB, must be below 40.0 MiB; took " in said


def test_what_fails_twice_fails_and_shows_both(tmp_path: Path) -> None:
    said, tries = tried(
        tmp_path, "@pytest.mark.measured\ndef test_a(measure):\n    measure.below('peak', 40 + nth() * 5, 40, 'MiB')\n"
    )
    assert tries == 2
    assert "1 failed" in said
    for value in ("try 1: failed; peak 45.0 MiB", "try 2: failed; peak 50.0 MiB"):
        assert value in said
    assert said.index("the first try") < said.index("peak 45.0 MiB, must be below 40.0 MiB\n")


def test_fixtures_are_made_again_for_a_second_try_and_one_that_fails_is_a_failed_try(tmp_path: Path) -> None:
    said, tries = tried(
        tmp_path,
        "@pytest.fixture(scope='module')\ndef shared():\n    assert nth() == 2\n    return [0]\n\n"
        "@pytest.fixture\ndef own(shared):\n    return list(shared)\n\n"
        "@pytest.mark.measured\ndef test_a(own):\n    own.append(1)\n    assert own == [0, 1]\n\n"
        "def test_b(shared):\n    assert shared == [0]\n",
    )
    assert tries == 2
    assert "2 passed" in said

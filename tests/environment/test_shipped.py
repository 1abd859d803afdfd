"""Tests are about the collections and DAG files that ship: those that a user adds beside them make none fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import shipped

TESTS = Path(__file__).parents[1]
WHOLE_FOLDER = re.compile(r'\bCOLLECTIONS\.r?glob|"collections"\)\.r?glob|PROJECT / "dags"')


def test_what_a_user_adds_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    shipped.copy_project(mine)
    (mine / "dags" / "odd.py").write_text("raise ValueError")
    (mine / "include" / "collections" / "odd.yaml").write_text("name: 1")
    monkeypatch.setattr(shipped, "PROJECT", mine)
    dags = shipped.copy_project(tmp_path / "copied")
    assert {path.stem for path in dags.iterdir()} == {*shipped.DAGS}
    assert {path.stem for path in (dags.parent / "include" / "collections").iterdir()} == {*shipped.COLLECTIONS}


def test_no_test_looks_at_the_whole_folders() -> None:
    own = {Path(__file__), Path(shipped.__file__)}
    files = [file for file in TESTS.rglob("*.py") if file not in own]
    assert [file.name for file in files if WHOLE_FOLDER.search(file.read_text(encoding="utf-8"))] == []

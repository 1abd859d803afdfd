"""Exports at once to one place: one is refused by name, and what a killed one left goes with the next."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tidemark.api.export import export
from tidemark.errors import Contention, InvalidUsage

pytestmark = pytest.mark.simulation

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
ROWS = pa.RecordBatch.from_pydict({"k": [1, 2], "v": ["a", "b"]}, schema=SCHEMA)
SLOW = """
import sys, time
from tests.simulation.test_export_at_once import ROWS, SCHEMA
from tidemark.api.export import export

def rows():
    yield ROWS
    print("writing", flush=True)
    time.sleep(600)

export(rows, SCHEMA, sys.argv[1], versions={}, format="csv", partition_by=sys.argv[2] or None, replace=True)
"""
FORMS = pytest.mark.parametrize("by", [None, "v"], ids=["file", "folder"])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def slow(tmp_path: Path, by: str | None) -> Iterator[subprocess.Popen[str]]:
    """A process that is in the midst of an export to `out`."""
    command = [sys.executable, "-c", SLOW, str(tmp_path / "out"), by or ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


@FORMS
def test_the_second_of_two_processes_is_refused(tmp_path: Path, by: str | None, slow: subprocess.Popen[str]) -> None:
    place, other = tmp_path / "out", tmp_path / "other"
    with pytest.raises(Contention, match=r"another export to .*out is running; run this one when it has ended"):
        export(lambda: [ROWS], SCHEMA, place, versions={}, format="csv", partition_by=by, replace=True)
    assert export(lambda: [ROWS], SCHEMA, other, versions={}, format="csv", partition_by=by).rows == 2
    assert not place.exists()
    slow.kill()
    slow.wait()
    assert [path.name[:17] for path in tmp_path.glob(".*")] == [".tidemark-export-"]
    assert export(lambda: [ROWS], SCHEMA, place, versions={}, format="csv", partition_by=by).rows == 2
    assert list(tmp_path.glob(".*")) == []


@FORMS
def test_of_a_killed_one_only_what_it_wrote_is_removed(
    tmp_path: Path, by: str | None, slow: subprocess.Popen[str]
) -> None:
    slow.kill()
    slow.wait()
    [beside] = tmp_path.glob(".*")
    (beside / "mine.txt").write_text("mine")
    before = files(tmp_path)
    with pytest.raises(InvalidUsage, match=r"mine.txt is there, which no export wrote; move it elsewhere"):
        export(lambda: [ROWS], SCHEMA, tmp_path / "out", versions={}, format="csv", partition_by=by)
    assert files(tmp_path) == before


@pytest.mark.parametrize("left", ["folder of another", "link", "file"])
def test_what_has_the_name_of_the_folder_beside(tmp_path: Path, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.api import export_place

    (tmp_path / "theirs").mkdir()
    beside = tmp_path / ".tidemark-export-762069bc07a6e1b5"
    match left:
        case "link":
            beside.symlink_to(tmp_path / "theirs")
        case "file":
            beside.write_text("theirs")
        case _:
            beside.mkdir()
            monkeypatch.setattr(export_place.os, "geteuid", lambda: 12345)
    with pytest.raises(InvalidUsage, match=f"{beside.name} is there, which is somebody else's"):
        export(lambda: [ROWS], SCHEMA, tmp_path / "out", versions={}, format="csv", partition_by="v")
    assert beside.exists()
    assert not any((tmp_path / "theirs").iterdir())


def test_a_folder_that_was_moved_away_by_a_killed_one_comes_back(tmp_path: Path) -> None:
    """Where the system cannot exchange two names, the old folder is moved away before the new one takes its place."""
    place = tmp_path / "out"
    export(lambda: [ROWS], SCHEMA, place, versions={}, format="csv", partition_by="v")
    beside = tmp_path / ".tidemark-export-762069bc07a6e1b5"
    beside.mkdir()
    place.rename(beside / "old")
    with pytest.raises(InvalidUsage, match="say replace"):
        export(lambda: [ROWS], SCHEMA, place, versions={}, format="csv", partition_by="k")
    assert sorted(files(tmp_path)) == ["out/_tidemark_export", "out/v=a/rows.csv", "out/v=b/rows.csv"]

"""`tidemark collect`: a plan one can read, and what it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.world import KILLED
from tests.cli.conftest import Shell


@pytest.fixture
def worn(events: Shell) -> Shell:
    """A collection with two windows of versions, drained batches, and what a killed attempt left."""
    for day in range(1, 5):
        events.events(day, f"{day},1,00:00:00")
        events.moved("events", f"2024-01-{day:02d}")
        events.ok("compact", "events")
        events.ok("gate", "events", "compaction")
    orphan = events.root / "events" / KILLED
    orphan.parent.mkdir()
    orphan.write_bytes(b"1" * 1234)
    return events


def stored(shell: Shell) -> set[Path]:
    return {path for path in shell.root.rglob("*") if path.is_file()}


def test_a_dry_run_shows_the_plan_and_touches_nothing(worn: Shell) -> None:
    before = stored(worn)
    said = worn.ok("collect", "events", "--dry-run").out
    assert stored(worn) == before
    for words in ("named by no version that is kept", KILLED, "1,234", "in 1d"):
        assert words in said
    assert "removed: 0 objects (0 bytes); waiting: 1 object (1,234 bytes); versions kept: 1 to " in said
    assert "nothing was written or removed" in said
    found = worn.json("collect", "events", "--dry-run")
    assert (found["outcome"], found["plan"], found["oldest_version"]) == ("planned", None, 1)
    [entry] = found["entries"]
    assert (entry["key"], entry["bytes"], entry["since"]) == (KILLED, 1234, 1)


def test_a_run_writes_a_plan_and_removes_nothing_before_its_grace(worn: Shell) -> None:
    said = worn.ok("collect", "events").out
    assert "plan: collect/00000001.json" in said
    plan = json.loads((worn.root / "events" / "collect" / "00000001.json").read_text())
    assert [entry["key"] for entry in plan["objects"]] == [KILLED]
    assert (worn.root / "events" / KILLED).exists()


def test_at_once_where_nothing_else_runs(worn: Shell) -> None:
    before = worn.json("as-of", "events")["rows"]
    refused = worn.refused("collect", "events", "--now", code=2)
    assert "takes objects from under whatever reads or writes them" in refused
    assert "--nothing-else-runs" in refused
    found = worn.json("collect", "events", "--now", "--nothing-else-runs", "--keep-versions", "0s")
    assert found["outcome"] == "applied"
    assert found["waiting"] == 0
    assert found["versions_removed"] >= 16
    assert found["oldest_version"] % 16 == 0
    assert not (worn.root / "events" / "data" / "killed").exists()
    assert "began to remove objects that no version names" in worn.ok("log", "events").out
    assert worn.json("as-of", "events")["rows"] == before
    assert worn.json("verify", "events")["sound"]
    assert worn.json("log", "events", "-n", "100")["versions"][-1]["version"] == found["oldest_version"]
    said = worn.ok("collect", "events").out
    assert "removed: 0 objects (0 bytes); waiting: 0 objects" in said
    assert f"versions kept: {found['oldest_version']} to" in said


@pytest.mark.parametrize(
    ("keep", "code", "said"),
    [
        ("10m", 1, "versions kept for 600 s would go before their grace of 3600 s"),
        ("soon", 2, "--keep-versions: not a duration: 'soon'"),
    ],
)
def test_what_cannot_be_kept_so_is_refused(events: Shell, keep: str, code: int, said: str) -> None:
    assert said in events.refused("collect", "events", "--keep-versions", keep, code=code)


def test_of_no_collection(shell: Shell) -> None:
    shell.root.mkdir()
    assert "nowhere" in shell.refused("collect", "nowhere")

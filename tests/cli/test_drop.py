"""`tidemark drop`: who must be asked before, what is left, and the way back."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from support.graph import Graph
from tests.cli.conftest import EVENTS, Shell, a_shell
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.derived import Definition, Derived

DERIVED = Collection(
    "sums",
    (Column("id", ColumnType.STRING),),
    (Column("amount", ColumnType.INT),),
    Derived(("events",), Definition(select="SELECT id, sum(amount) AS amount FROM events GROUP BY id")),
)


@pytest.fixture
def sums(tmp_path: Path) -> Shell:
    """`events` with two rows, and `sums` computed from it; no file declares them any more."""
    shell = replace(a_shell(tmp_path), runner=None)
    shell.ok("init", file := shell.declared(EVENTS))
    Path(file).unlink()
    shell.events(1, "a,1,10:00", "b,2,11:00")
    shell.moved("events", "2024-01-01")
    Graph(shell.root).declare(DERIVED)
    moved(shell)
    return shell


def moved(shell: Shell) -> None:
    shell.ok("correct", "sums")
    for step in (("gate", "unsealed"), ("seal",), ("gate", "frontier"), ("drain",), ("gate", "trace")):
        shell.ok(step[0], "sums", *step[1:])


def drop(shell: Shell, name: str, *options: str) -> tuple[str, ...]:
    return ("drop", name, "--collections", str(shell.files), *options)


def test_a_dropped_collection_is_nowhere_and_comes_back_whole(sums: Shell) -> None:
    before = sums.json("as-of", "sums")["rows"]
    log = sums.json("log", "sums")["versions"]
    dropped = sums.json(*drop(sums, "sums"))
    assert (dropped["outcome"], dropped["released"]) == ("applied", ["events"])
    assert sums.json(*drop(sums, "sums"))["outcome"] == "nothing to do"
    for command in (("as-of", "sums"), ("status", "sums"), ("log", "sums"), ("verify", "sums"), ("correct", "sums")):
        assert "collection sums was dropped; `tidemark drop sums --undo` brings it back" in sums.refused(*command)
    assert [seen["collection"] for seen in sums.json("status")["collections"]] == ["events"]
    assert "there is no collection sums" in sums.refused("sql", "SELECT * FROM sums")
    assert sums.json("hold", "events")["holds"] == []
    assert "sums is back, as of version " in sums.ok("drop", "sums", "--undo").out
    assert sums.json("as-of", "sums")["rows"] == before
    assert [version["kind"] for version in sums.json("log", "sums")["versions"]][:2] == ["restored", "dropped"]
    assert sums.json("log", "sums")["versions"][2:] == log
    assert [hold["hold"] for hold in sums.json("hold", "events")["holds"]] == ["derived.sums"]
    assert sums.json("verify", "sums", "--data")["sound"]
    assert sums.json("correct", "sums")["outcome"] == "nothing to do"
    assert "there was nothing to undo" in sums.ok("drop", "sums", "--undo").out


def test_what_depends_on_it_is_named_with_the_flags(sums: Shell) -> None:
    file = sums.declared(EVENTS.replace("events\nkey", "'events'  # ours\nkey"))
    assert f"{file} declares events, so its DAG would create it again" in sums.refused(*drop(sums, "events"))
    Path(file).unlink()
    sums.ok("hold", "events", "report")
    refused = sums.refused(*drop(sums, "events"))
    assert "events is in use, computed from it: sums; somebody holds its history: report" in refused
    assert refused.endswith("to drop it all the same say --break-derived --break-holds")
    assert sums.refused(*drop(sums, "events", "--break-derived")).endswith("say --break-holds")
    sums.ok(*drop(sums, "events", "--break-derived", "--break-holds"))
    assert "waits for events: events was never created, or was dropped" in sums.ok("correct", "sums").out
    assert sums.json("as-of", "sums")["rows"]
    sums.ok("drop", "events", "--undo")
    assert sums.json("correct", "sums")["outcome"] == "nothing to do"


def test_its_name_is_free_for_another_declaration_and_what_was_computed_from_it_is_computed_again(sums: Shell) -> None:
    sums.ok(*drop(sums, "events", "--break-derived"))
    shutil.rmtree(sums.landing / "events")
    other = EVENTS.replace("key: [id]\nvalue: [amount]", "key: [amount]\nvalue: [id]").replace("append", "upsert")
    sums.ok("init", sums.declared(other))
    sums.events(1, "a,1,10:00", "b,1,11:00")
    sums.moved("events", "2024-01-01")
    assert [row["id"] for row in sums.json("as-of", "events")["rows"]] == ["b"]
    assert sums.json("drop", "events", "--undo")["outcome"] == "nothing to do"
    assert sums.json("correct", "sums")["outcome"] == "applied"
    moved(sums)
    assert [(row["id"], row["amount"]) for row in sums.json("as-of", "sums")["rows"]] == [("b", 1)]
    assert sums.json("verify", "events", "--data")["sound"]


def test_collect_removes_what_it_was_made_of_and_nothing_else(sums: Shell) -> None:
    folder = sums.root / "sums"
    (folder / "data" / "mine.txt").write_text("of a person")
    at_once = ("collect", "sums", "--now", "--nothing-else-runs", "--keep-versions", "0s")
    assert (sums.root / "_gates" / "sums").exists() or (sums.files / "docs" / "sums").exists()
    sums.ok(*drop(sums, "sums"))
    sums.ok("collect", "sums")
    assert list(folder.glob("data/*/*.parquet")), "removed before its grace"
    sums.ok("drop", "sums", "--undo")
    sums.ok(*drop(sums, "sums"))
    assert sums.json(*at_once)["objects_removed"] == 1
    left = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert {path.parts[0] for path in left} == {"data", "versions", "collect"}
    assert [path for path in left if path.parts[0] == "data"] == [Path("data/mine.txt")]
    assert len([path for path in left if path.parts[0] == "versions"]) <= 16
    assert not list((sums.files / "docs" / "sums").rglob("*.json"))
    assert "has been collected; `tidemark init` creates another one" in sums.refused("drop", "sums", "--undo")
    Graph(sums.root).declare(DERIVED)
    moved(sums)
    assert len(sums.json("as-of", "sums")["rows"]) == 2
    sums.ok(*at_once)
    assert sums.json("verify", "sums", "--data")["sound"]


def test_doctor_ends_the_holds_of_folders_removed_by_hand(sums: Shell) -> None:
    assert sums.json("doctor")["needless_holds"] == []
    shutil.rmtree(sums.root / "sums")
    for names in ((), ("events",)):
        said = sums.ok("doctor", *names).out
        assert "hold derived.sums on events keeps history for nobody, and can go: `tidemark doctor --fix` ends" in said
    assert sums.json("hold", "events")["holds"]
    assert sums.json("doctor", "--fix")["needless_holds"] == [{"collection": "events", "hold": "derived.sums"}]
    assert sums.json("hold", "events")["holds"] == []
    assert sums.json("doctor")["needless_holds"] == []

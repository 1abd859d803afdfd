"""`tidemark publish` and `unpublish`, and what is wrong in a line."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tests.cli.conftest import EVENTS, Shell

PUBLISHED = EVENTS + "publish:\n  iceberg: {table: db.events}\n  delta: {}\n"


@pytest.fixture
def published(shell: Shell) -> Shell:
    """Two days, published after the first."""
    shell.ok("init", shell.declared(PUBLISHED))
    shell.events(1, "a,1,10:00", "b,2,11:00")
    shell.moved("events", "2024-01-01")
    return shell


def tables(shell: Shell) -> list[Counter[tuple[str, int]]]:
    folder = shell.root / "_published"
    properties = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/iceberg"}
    iceberg = load_catalog("tidemark", type="sql", **properties).load_table("db.events").scan().to_arrow()
    delta = DeltaTable(str(folder / "delta" / "events")).to_pyarrow_table()
    return [Counter((row["id"], row["amount"]) for row in table.to_pylist()) for table in (iceberg, delta)]


def test_each_seal_is_published_once(published: Shell) -> None:
    said = published.ok("publish", "events").out
    assert "applied: iceberg db.events holds it up to 2024-01-02T00:00:00Z: 1 part named" in said
    assert "events holds it up to 2024-01-02T00:00:00Z: written whole" in said
    assert tables(published) == [Counter([("a", 1), ("b", 2)])] * 2
    assert published.json("publish", "events")["outcome"] == "nothing to do"
    published.events(2, "c,3,10:00")
    published.moved("events", "2024-01-02")
    published.ok("publish", "events")
    assert tables(published) == [Counter([("a", 1), ("b", 2), ("c", 3)])] * 2
    log = published.ok("log", "events").out
    assert "published to iceberg table db.events: known up to 2024-01-03T00:00:00Z" in log
    assert published.json("verify", "events")["sound"]
    status = published.json("status", "events")["published"]
    assert sorted((one["format"], one["seal_text"]) for one in status) == [
        ("delta", "2024-01-03T00:00:00Z"),
        ("iceberg", "2024-01-03T00:00:00Z"),
    ]
    assert "iceberg db.events: known up to 2024-01-03T00:00:00Z" in " ".join(
        published.ok("status", "events").out.split()
    )
    # What is published beside the collections is none of them.
    assert [one["collection"] for one in published.json("status")["collections"]] == ["events"]


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ("publish: {iceberg: {table: events}}", "table 'events' is no identifier"),
        ("publish: {iceberg: {table: db.order}}", "a reserved word of SQL"),
        ("publish: {icebrg: {}}", "did you mean 'iceberg'?"),
        ("publish: {iceberg: {table: db.t, catalog: {s3.secret-access-key: x}}}", "is a secret"),
    ],
)
def test_a_file_that_is_refused(shell: Shell, said: str, refusal: str) -> None:
    assert refusal in shell.refused("init", shell.declared(f"{EVENTS}{said}\n"))


def test_a_call_that_is_refused(shell: Shell) -> None:
    shell.ok("init", shell.declared(EVENTS))
    assert "declares no table; write publish: {iceberg: {table: db.events}}" in shell.refused("publish", "events")
    assert shell.refused("unpublish", "events") == "collection events is not published"
    assert "'parquet'" in shell.refused("unpublish", "events", "--format", "parquet", code=2)
    shell.ok("init", shell.declared(PUBLISHED))
    assert shell.json("publish", "events")["outcome"] == "waits"


def test_the_page_reads_it_so(published: Shell) -> None:
    """The Python of docs/how-to/publish-tables.md, over a collection of this test."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "publish-tables.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    published.ok("publish", "events")
    code = code.replace("/data/collections", str(published.root)).replace("flights", "events")
    *before, properties, scan, _, delta = code.replace("delay_min > 30", "amount > 1").strip().splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    assert eval(properties, names) == "2024-01-02T00:00:00Z"
    assert eval(scan, names).to_pylist() == [{"id": "b", "amount": 2}]
    assert eval(delta, names).num_rows == 2

"""Derived collections at rest: their declarations, changes and states come back as they went, and what their versions
name is found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from support.derivations import derived, landed
from tests.support.kinds import SAMPLES, Sample, name
from tidemark.errors import UpgradeRequired
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.change import Created
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.derived import Definition, Refresh, Validity
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Tumbling, WindowKind
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Late, Windows
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import VersionRecord
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

BY_ROW = derived(
    "d",
    "a",
    by_row=True,
    value=(Column("n", ColumnType.INT), Column("gone", ColumnType.TIMESTAMP)),
    validity=Validity(valid_to="gone"),
    history=5,
    max_lag=9,
)
PYTHON = replace(
    derived("d", "a", "b", hidden=(Column("_rows", ColumnType.INT),)),
    origin=replace(
        BY_ROW.derived,
        inputs=("a", "b"),
        definition=Definition(function="m:f", version="3", by=("k",)),
        refresh=Refresh.WHOLE,
        validity=None,
    ),
)
AGGREGATES = (Aggregate("n", Function.COUNT), Aggregate("q", Function.APPROX_QUANTILE, "v", "v > 1", 0.5))


def windowed(kind: WindowKind) -> Collection:
    windows = Windows(("k",), "at", kind, AGGREGATES, "k > 1", 5, Late.REEMIT, 7, early=True)
    bounds = tuple(Column(name, ColumnType.TIMESTAMP) for name in (WINDOW_START, WINDOW_END))
    return derived("d", "a", key=(Column("k", ColumnType.INT), *bounds), definition=Definition(windows=windows))


def record(declared: Collection, checkpoint: Arrangement | None = None) -> VersionRecord:
    return VersionRecord(1, "", "id", 0, "who", Created(declared, "one"), checkpoint)


def read(data: bytes) -> Any:
    return document.read(data, Kind.VERSION, VersionRecord, name="v")


@pytest.mark.parametrize("declared", [BY_ROW, PYTHON, landed("a")], ids=["by row", "python", "landed"])
def test_a_declaration_comes_back_as_it_went(declared: Collection) -> None:
    assert read(document.write(record(declared))) == record(declared)


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_windows_of_each_kind_come_back_as_they_went(sample: Sample) -> None:
    assert read(document.write(record(windowed(sample.kind)))) == record(windowed(sample.kind))


def test_windows_of_a_kind_of_a_later_release_ask_for_that() -> None:
    stored = json.loads(document.write(record(windowed(Tumbling(10, 3)))))
    stored["change"]["collection"]["origin"]["definition"]["windows"]["kind"] = {"kind": "spiral", "turns": 3}
    with pytest.raises(UpgradeRequired, match="origin"):
        read(json.dumps(stored).encode())


@pytest.mark.parametrize("declared", [BY_ROW, landed("a")], ids=["derived", "landed"])
@pytest.mark.parametrize(
    "member", [{"soon": 1}, {"kind": "windowed"}, {"kind": "windowed", "size": 7}], ids=["field", "kind", "both"]
)
def test_an_origin_of_a_later_release_asks_for_that(declared: Collection, member: dict[str, Any]) -> None:
    stored = json.loads(document.write(record(declared)))
    stored["change"]["collection"]["origin"] |= member
    with pytest.raises(UpgradeRequired, match="origin"):
        read(json.dumps(stored).encode())


def part(store: MemoryStore, name: str) -> Part:
    data = name.encode()
    store.create(f"data/{name}.parquet", data)
    file = ObjectRef(f"data/{name}.parquet", len(data), "0")
    return Part(file, 1, 7, (((1,), 1),), (1,), 19, 19, 19, 19)


def test_definitions_of_before_there_were_windows_have_none() -> None:
    stored = json.loads(document.write(record(BY_ROW)))
    del stored["change"]["collection"]["origin"]["definition"]["windows"]
    assert read(json.dumps(stored).encode()) == record(BY_ROW)

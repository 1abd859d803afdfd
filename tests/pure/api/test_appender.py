"""`tidemark.appender`: rows are checked, cut by every rule, and become files that are ingested as any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidemark
from tests.pure.api.appending import FILE, NOON, SECOND, Place, row, table
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def declared(place: Place) -> Place:
    place.declare()
    return place


@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_what_is_appended_is_ingested_as_any_file(place: Place, format: str) -> None:
    place.declare(f"{{{{ landing }}}}/readings/{{{{ ds }}}}/*.{format}", format)
    with place.appender(rows=3) as readings:
        for value in range(4):
            readings.append(row(value))
        readings.append(table(range(4, 8)))
    place.run("advance", "readings", "--to", "2024-01-02", "--landing", str(place.landing))
    rows = tidemark.open(place.root, "readings").as_of().to_arrow().to_pylist()
    assert sorted(each["value"] for each in rows) == list(range(8))
    assert {each["measured"].microsecond for each in rows} == set(range(8))
    assert {each["uploaded"] for each in rows} == {None}
    assert [path.parent.name for path in place.files()] == ["2024-01-01"] * 3


def test_each_rule_ends_a_chunk_and_the_reason_is_reported(declared: Place) -> None:
    readings = declared.appender(producer="p", rows=2_000, bytes=10**6, age="1m")
    chunks = [
        *readings.append(row(0)),
        *readings.append(row(1, uploaded=NOON)),
        *readings.append(table(range(2, 2_002))),
    ]
    declared.clock.now += 30 * SECOND
    chunks += [*readings.append(row(2_002)), *readings.tick()]
    declared.clock.now += 60 * SECOND
    chunks += [*readings.tick(), *readings.append(row(2_003)), *readings.flush(), *readings.flush()]
    wide = {**row(2_004), "sensor": "w" * 60_000}
    chunks += [chunk for _ in range(17) for chunk in readings.append(wide)]
    chunks += [*readings.append(row(2_005)), *readings.close(), *readings.close()]
    assert [(chunk.first, chunk.rows, chunk.reason) for chunk in chunks] == [
        (0, 1, "timeline_set"),
        (1, 1, "timeline_set"),
        (2, 2_000, "rows"),
        (2_002, 1, "age"),
        (2_003, 1, "flush"),
        (2_004, 17, "bytes"),
        (2_021, 1, "end"),
    ]
    assert [Path(chunk.path) for chunk in chunks] == declared.files()
    assert readings.position == readings.taken == len(declared.values()) == 2_022


def test_rows_in_no_order_end_a_chunk_as_does_the_row_that_would_unsort_it(declared: Place) -> None:
    readings = declared.appender(unsorted_rows=1_024)
    chunks = readings.append(table(range(1_030), measured=lambda value: NOON + (0 if value == 1_026 else value)))
    chunks += readings.append(table(range(1_030, 2_100), measured=lambda value: NOON - value))
    assert [(chunk.rows, chunk.reason) for chunk in chunks] == [(1_026, "would_unsort"), (1_024, "unsorted_rows")]
    readings.close()
    assert declared.values() == list(range(2_100))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"valeu": 1}, "readings has no column 'valeu'; did you mean 'value'"),
        ({"sensor": None}, "column sensor is null; a key never is"),
        ({"sensor": b"\xff"}, "column sensor is of type string; bytes is no text, decode it"),
        ({"sensor": "\ud800"}, "is no value of it"),
        ({"seen": None}, "column seen is null; a time never is"),
        ({"seen": -1}, "column seen holds a time before 1970: -1 µs"),
        ({"value": 1.5}, "column value is of type int; 1.5 is no value of it"),
        ({"value": True}, "column value is of type int; True is no value of it"),
        ({"value": 2**63}, "column value is of type int; 9223372036854775808 is no value of it"),
        ({"sensor": "x" * 70_000}, "column sensor holds 70,000 bytes; a key's text has at most 65,536"),
        ({"measured": "yesterday"}, "column measured is of type timestamp; 'yesterday' is no value of it"),
    ],
)
def test_a_wrong_row_is_refused_in_a_line_and_the_others_stay(
    declared: Place, wrong: dict[str, Any], said: str
) -> None:
    readings = declared.appender()
    readings.append(row(0))
    with pytest.raises(InvalidUsage) as refused:
        readings.append({**row(1), **wrong})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    readings.append(row(2))
    readings.close()
    assert declared.values() == [0, 2]


def test_a_wrong_batch_is_refused_whole(declared: Place) -> None:
    good = table(range(3))
    at = good.schema.get_field_index("sensor")
    cases = {
        "row 2 of the batch: column sensor is null": good.set_column(at, "sensor", pa.array(["a", None, "c"])),
        "column sensor is declared string, the batch has int64": good.set_column(at, "sensor", pa.array([1, 2, 3])),
        "column sensor is null; a key never is": good.drop_columns(["sensor"]),
        "column value is there 2 times": good.append_column("value", good["value"]),
        "this is list": [row(0)],
        "this is str": "sensor",
    }
    readings = declared.appender()
    for said, wrong in cases.items():
        with pytest.raises(InvalidUsage, match=said):
            readings.append(wrong)
    readings.append(good.to_batches()[0])
    readings.append(good.drop_columns(["value", "uploaded"]))
    readings.append(good.slice(0, 0))
    readings.close()
    assert declared.values() == [0, 1, 2, None, None, None]


def test_a_batch_that_changes_after_it_was_appended_changes_nothing(declared: Place) -> None:
    numbers = np.arange(3)
    times = pa.array([NOON] * 3, pa.timestamp("us", "UTC"))
    readings = declared.appender()
    readings.append(
        pa.table(
            {
                "sensor": ["a", "b", "c"],
                "value": pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(numbers)]),
                "seen": times,
            }
        )
    )
    numbers[:] = 7
    readings.close()
    assert declared.values() == [0, 1, 2]


def test_what_takes_no_rows_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.declare()
    monkeypatch.delenv("TIDEMARK_LANDING", raising=False)
    refusals: list[tuple[str, dict[str, Any]]] = [
        ("the landing is not known: pass landing=, or set TIDEMARK_LANDING", {"landing": None}),
        ("landing .*/nowhere does not exist", {"landing": place.folder / "nowhere"}),
        ("producer 'a.b' must match", {"producer": "a.b"}),
        ("rows is 0; it must be a whole number, 1 or more", {"rows": 0}),
        ("bytes is True; it must be a whole number", {"bytes": True}),
        ("unsorted_rows is 100; it must be a whole number, 1,024 or more", {"unsorted_rows": 100}),
        ("not a duration: 'soon'", {"age": "soon"}),
        ("no interval of readings takes rows at 1970-01-01T00:00:10Z: it starts at 2024-01-01", {"clock": lambda: 0}),
    ]
    for said, options in refusals:
        with pytest.raises(InvalidUsage, match=said):
            place.appender(**options)
    with pytest.raises(InvalidUsage, match=r"no collection reading under .*; existing: readings"):
        tidemark.appender(place.root, "reading", landing=place.landing)
    readings = place.appender()
    readings.close()
    with pytest.raises(InvalidUsage, match="the appender of readings is closed; open another one"):
        readings.append(row(0))


def test_full_snapshots_and_change_messages_are_refused(place: Place) -> None:
    text = "\n".join(
        line for line in FILE.splitlines() if not line.startswith(("time:", "columns:", "value:", "timel"))
    )
    text += "\nvalue: [value]\ncolumns: {{sensor: string, value: int}}\n"
    place.declare(envelope="snapshot", text=text)
    with pytest.raises(
        InvalidUsage, match="nothing can be appended to readings: a full snapshot is all rows of its int"
    ):
        place.appender()


def test_what_waits_in_memory_is_bounded_by_bytes(declared: Place) -> None:
    limit, most = 200_000, 0
    readings = declared.appender(bytes=limit)
    for value in range(3_000):
        readings.append({**row(value), "sensor": "s" * 200})
        assert len(readings._waiting._loose) <= 1_024
        assert not readings._ended
        if value % 50 == 0:
            most = max(most, sum(batch.nbytes for batch in (*readings._waiting._loose, *readings._waiting._whole)))
    assert limit / 2 < most <= 1.01 * limit
    readings.close()
    assert declared.values() == list(range(3_000))

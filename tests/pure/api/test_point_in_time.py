"""`latest_at` of a table: its rows in order, each with the latest row of its key, and what is refused at the call."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest

import tidemark
from tests.pure.api.made import Made
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, Retention

pytestmark = pytest.mark.pure
VALUE = (Column("v", ColumnType.STRING), Column("seen", ColumnType.TIMESTAMP), Column("n", ColumnType.INT))
INSTANT = pa.timestamp("us", "UTC")


def at(second: int) -> datetime:
    return datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC)


def instants(*micros: int | None, of: pa.DataType = INSTANT) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(of)


def reading(k: int, v: str, second: int, t: int, d: int = 1) -> dict[str, Any]:
    return {"k": k, "v": v, "seen": f"1970-01-01T00:00:{second:02}Z", "n": second, "t": t, "e": t, "d": d}


@pytest.fixture(scope="module")
def tides(tmp_path_factory: pytest.TempPathFactory) -> tidemark.OpenCollection:
    """A reading of key 1 came late, on day 1, and one of key 2 was corrected then."""
    made = Made(tmp_path_factory.mktemp("landing"), Envelope.UPDATES, value=VALUE)
    made.drained(0, [reading(1, "a", 10, 1), reading(1, "c", 30, 3), reading(2, "wrong", 20, 4)])
    made.sealed(1, [reading(1, "b", 20, 12), reading(2, "wrong", 20, 13, -1), reading(2, "right", 20, 13)])
    return tidemark.open(made.root, "tides")


PROBES = pa.table(
    {
        "id": ["p", "q", "r", "s", "t", "u", "q"],
        "k": pa.array([1, 2, 1, None, 1, 7, 2], pa.int32()),
        "seen": pa.array([at(35), at(25), at(25), at(25), None, at(25), at(25)], pa.timestamp("ns", "Europe/Paris")),
        "asked": instants(3, 5, 11, 11, 11, 11, 13),
    }
)


def values(answer: tidemark.Answer, *names: str) -> list[Any]:
    rows = answer.to_arrow().to_pylist()
    return [tuple(row[name] for name in names) if len(names) > 1 else row[names[0]] for row in rows]


def test_each_row_of_the_table_has_the_latest_row_of_its_key(tides: tidemark.OpenCollection) -> None:
    answer = tides.latest_at("seen", at=PROBES)
    assert answer.schema.names == ["id", "k", "seen", "asked", "v", "_at", "n"]
    assert answer.to_arrow().select(["id", "k", "seen", "asked"]) == PROBES, "the table is as it was, in its order"
    assert values(answer, "v", "n") == [
        ("c", 30), ("right", 20), ("b", 20), (None, None), (None, None), (None, None), ("right", 20)
    ]  # fmt: skip
    assert values(answer, "_at")[:2] == [at(30), at(20)]


def test_tables_of_other_libraries(tides: tidemark.OpenCollection) -> None:
    wanted = values(tides.latest_at("seen", at=PROBES), "v")

    class Stream:
        """What polars and others give."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return PROBES.__arrow_c_stream__(requested_schema)

    [batch] = PROBES.combine_chunks().to_batches()
    views = pa.table({"k": [1], "seen": [at(25)]})
    for table in (Stream(), batch):
        assert values(tides.latest_at("seen", at=table), "v") == wanted
    frame = pandas.DataFrame({"k": [2, 1], "seen": [at(35), at(25)]}, index=[5, 6])
    assert tides.latest_at("seen", at=frame, columns="v").to_pandas()["v"].tolist() == ["right", "b"]
    answer = tides.latest_at("seen", at=tides.latest_at("seen", at(25), columns=["k", "seen"]), columns="v")
    assert values(answer, "k", "v") == [(1, "b"), (2, "right")], "an answer is a table, too"
    assert values(tides.latest_at("seen", at=views.slice(0, 0)), "v") == []


def test_it_is_an_answer_as_any_other(tides: tidemark.OpenCollection) -> None:
    answer = tides.latest_at("seen", None, "n > 5", "1h", at=PROBES, known_at="asked", columns=["v", "n"])
    table = answer.to_arrow()
    assert table.num_rows == answer.count() == 7
    assert table.schema == answer.schema == answer.reader().schema
    assert pickle.loads(pickle.dumps(answer)).to_arrow() == table == answer.to_arrow()
    (_, span) = answer._request.spans  # type: ignore[attr-defined]
    assert span.intervals == ((25_000_000 - 3_600_000_000, 35_000_000),)
    assert answer.explain().parts > 0
    assert repr(answer) == (
        "<latest rows of tides by seen at seen of 7 rows; as known at asked; where 'n > 5'; "
        f"version {tides.version}, "
        f"complete below 1970-01-01T00:00:00.000020Z; columns id, k, seen, asked, v, n; not read yet>"
    )


KEYS: list[tuple[Any, str, pa.Array]] = [
    (ColumnType.STRING, '"ü"', pa.array(["ü", "x"]).dictionary_encode()),
    (ColumnType.STRING, '"ü"', pa.array(["ü", "x"], pa.large_string())),
    (ColumnType.STRING, '"ü"', pa.array(["ü", "x"], pa.string_view())),
    (ColumnType.BYTES, '"AP8="', pa.array([b"\x00\xff", b""], pa.large_binary())),
    (ColumnType.BOOL, "true", pa.array([True, False])),
    (ColumnType.DATE, '"2024-02-29"', pa.array([19782, 0], pa.int32()).cast(pa.date32()).cast(pa.date64())),
    (ColumnType.TIMESTAMP, '"1970-01-01T00:00:01Z"', pa.array([1, 0], pa.timestamp("s"))),
    (ColumnType.JSON, '{"b":1,"a":[]}', pa.array(['{"a": [], "b": 1}', "1"])),
    (DecimalType(12, 2), "1.50", pa.array([Decimal("1.500"), None], pa.decimal128(20, 3))),
    (DecimalType(12, 2), "2", pa.array([2, 3], pa.uint8())),
    (ColumnType.INT, "7", pa.array([7, 8], pa.uint64())),
    (ColumnType.INT, "7", pa.nulls(2)),
]


@pytest.mark.parametrize(("of", "text", "keys"), KEYS)
def test_keys_of_every_type_meet_in_whatever_type_arrow_has_them(
    tmp_path: Path, of: Any, text: str, keys: pa.Array
) -> None:
    made = Made(tmp_path, key=(Column("k", of),), value=VALUE[2:])
    folder = tmp_path / "0"
    folder.mkdir()
    (folder / "a.jsonl").write_text(f'{{"k": {text}, "n": 5, "t": 1, "e": 1}}\n')
    made.days = [[]]
    made.world.land = lambda *_: ""  # type: ignore[method-assign, misc, assignment]
    made.sealed(0, [])
    answer = tidemark.open(made.root, "tides").latest_at("n", at=pa.table({"k": keys, "n": [9, 9]}))
    assert values(answer, "_at") == [None if keys.null_count == 2 else 5, None]


Ask = Callable[[tidemark.OpenCollection], Any]


def changed(name: str, column: Any) -> pa.Table:
    return PROBES.set_column(PROBES.schema.get_field_index(name), name, column)


BAD: list[tuple[Ask, str]] = [
    (lambda c: c.latest_at("seen", at=[1]), r"at is list; give a table of keys and times: of pyarrow, pandas"),
    (lambda c: c.latest_at("seen", 5, at=PROBES), r"t is one time, and at a table of times; give one of them"),
    (lambda c: c.latest_at("seen", 5, known_at="k"), r"at_column and known_at are columns of a table; give it as at="),
    (lambda c: c.latest_at("seen", at=PROBES.drop_columns("k")), r"no column 'k' for the key column k; there are id"),
    (lambda c: c.latest_at("seen", at=PROBES.drop_columns("seen")), r"no column 'seen' for the timeline seen"),
    (lambda c: c.latest_at("seen", at=PROBES, known_at="askd"), r"no column 'askd' .*; did you mean 'asked'\?"),
    (lambda c: c.latest_at("seen", at=PROBES, at_column=7), r"at_column is 7 \(int\); write the name of a column"),
    (lambda c: c.latest_at("n", at=PROBES, at_column="seen"),
     r"column seen .* type timestamp\[ns.*; the timeline n is int"),
    (lambda c: c.latest_at("seen", at=PROBES, known_at="k"),
     r"column k .* is of type int32; the time of what was known"),
    (lambda c: c.latest_at("seen", at=changed("k", [[1.0] * 7])),
     r"column k .* is of type double; the key column k is int"),
    (lambda c: c.latest_at("seen", at=changed("k", pa.array([2**63] * 7, pa.uint64()))),
     r"column k .* has a value that"),
    (lambda c: c.latest_at("seen", at=changed("seen", instants(*[2**60] * 7, of=pa.timestamp("s")))),
     r"seen .* has a v"),
    (lambda c: c.latest_at("seen", at=PROBES.append_column("v", PROBES["id"])), r"column v is in the table and in the"),
    (lambda c: c.latest_at("seen", at=PROBES.append_column("_at", PROBES["id"])), r"column _at is in the table and in"),
    (lambda c: c.latest_at("seen", at=PROBES, columns=["k"]), r"column k is in the table and in the answer"),
    (lambda c: c.latest_at("seen", at=PROBES.append_column("k", PROBES["k"])), r"the table has 2 columns 'k'"),
    (lambda c: c.latest_at("seen", at=PROBES, time=3, known_at="asked"), r"time and known_at both say what was known"),
    (lambda c: c.latest_at("seen", at=PROBES, time=20),
     r"outside the readable \[since .*, seal 1970-01-01T00:00:00.000020Z"),
    (lambda c: c.latest_at("seen", at=changed("asked", instants(*[20] * 7)), known_at="asked"),
     r"known_at 1970-01-01T00:00:00.000020Z is outside the readable \[since .*, seal 1970-01-01T00:00:00.000020Z\)"),
    (lambda c: c.latest_at("seen", at=changed("asked", instants(*[-1] * 7)), known_at="asked"),
     r"known_at -1 is outside"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "said"), BAD)
def test_what_cannot_be_asked_is_refused_at_the_call(tides: tidemark.OpenCollection, ask: Ask, said: str) -> None:
    with pytest.raises(tidemark.InvalidUsage, match=said) as refused:
        ask(tides)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("kept", "asked", "said"),
    [
        (Retention("full_merge"), [15, 9], "known_at .*09Z is outside the readable .since .*, seal .*20Z."),
        (Retention("time_boundary", interval=5), [9, 14, 13], "known_at .*13Z is outside the readable"),
    ],
)
def test_times_of_knowledge_that_were_merged_are_refused(
    tmp_path: Path, kept: Retention, asked: Sequence[int], said: str
) -> None:
    made = Made(tmp_path, value=VALUE[2:], retention=kept)
    for day in range(2):
        made.drained(day, [{"k": 1, "n": day, "t": day * 10 + 1, "e": day * 10 + 1}])
        made.compacted(day)
    opened = tidemark.open(made.root, "tides")
    table = pa.table({"k": [1] * len(asked), "n": [9] * len(asked), "asked": instants(*asked)})
    with pytest.raises(tidemark.InvalidUsage, match=said):
        opened.latest_at("n", at=table, known_at="asked")
    fine = table.filter(pa.array([opened.state.function.keeps(one) for one in asked]))
    assert fine.num_rows < table.num_rows
    assert set(values(opened.latest_at("n", at=fine, known_at="asked"), "_at")) <= {0, 1}


def test_few_probes_open_few_parts(tmp_path: Path) -> None:
    """Only parts that can hold a key of the table are read."""
    made = Made(tmp_path, value=VALUE[2:])
    for day in range(3):
        rows = [{"k": 100 * day + k, "n": k, "t": day * 10 + 1, "e": day * 10 + 1} for k in range(5)]
        made.drained(day, rows)
    opened = tidemark.open(made.root, "tides")
    read: list[str] = []
    store, opening = opened.store, opened.store.open_input
    store.open_input = lambda key: read.append(key) or opening(key)  # type: ignore[method-assign, func-returns-value]
    answer = opened.latest_at("n", at=pa.table({"k": [203, 1], "n": [9, 9]}))
    assert values(answer, "_at") == [3, 1]
    assert len([key for key in read if key.endswith(".parquet")]) == 2


def test_the_last_key_there_is_and_the_ends_of_all_times(tmp_path: Path) -> None:
    """Behind the greatest integer there is no key, and around the ends of a timeline no time."""
    ends = -(2**63), 2**63 - 1
    made = Made(tmp_path, value=VALUE[2:])
    made.drained(0, [{"k": k, "n": n, "t": 1, "e": 1} for k in ends for n in ends])
    opened = tidemark.open(made.root, "tides")
    table = pa.table({"k": [*ends, *ends], "n": [ends[0], ends[0], ends[1], ends[1]]})
    for within in (None, 0, 1, 2**63 - 1, 2**64):
        answer = opened.latest_at("n", at=table, within=within)
        assert values(answer, "_at") == table["n"].to_pylist(), within
        for time in ends:
            assert values(opened.latest_at("n", time, within=within), "k", "n") == [(k, time) for k in ends]
    near = pa.table({"k": [*ends], "n": [ends[0] + 1, ends[1] - 1]})
    assert values(opened.latest_at("n", at=near, within=0), "_at") == [None, None]
    assert values(opened.latest_at("n", at=near, within=2**63), "_at") == [ends[0], None]
    assert values(opened.latest_at("n", at=near, within=2**64), "_at") == [ends[0], ends[0]]

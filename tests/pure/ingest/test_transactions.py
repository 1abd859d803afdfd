"""Messages of transactions: which facts each op and form of image gives, by connector, and which are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pure.ingest.landed import decoded, listed
from tidemark.arrow.decode import jsonlfile
from tidemark.arrow.decode.source import BadFile, decode, fetch
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.unavailable import UNAVAILABLE

pytestmark = pytest.mark.pure

TS = Column("source.ts_ms", ColumnType.TIMESTAMP)
IDS = {
    "postgresql": {"txId": 7},
    "oracle": {"txId": "5.6.640"},
    "sqlserver": {"commit_lsn": "00000027:00000ac0:0002"},
    "mysql": {"gtid": "3e11fa47:5"},
    "mariadb": {},
}
NAMES = {"postgresql": "7", "oracle": "5.6.640", "sqlserver": "00000027:00000ac0:0002", "mysql": "3e11fa47:5"}
Fact = tuple[Any, ...]


def collection(*, event_time: str = TS.name) -> Collection:
    source = Source("/landing/*", Format.JSONL, Envelope.DEBEZIUM, ("source.lsn",), transactions=True)
    value = (Column("city", ColumnType.STRING, 2), Column("n", ColumnType.INT, 3), Column("doc", ColumnType.JSON, 4))
    lsn = Column("source.lsn", ColumnType.INT)
    return Collection(
        "people", (Column("id", ColumnType.INT, 1),), value, Landed(source, event_time=event_time, inputs=(TS, lsn))
    )


def message(op: str, before: Any, after: Any, lsn: int = 1, tx: int | None = 7, **more: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "ts_ms": 5, "txId": tx, "lsn": lsn, **more}
    return {"op": op, "before": before, "after": after, "source": source}


def row(id: int, city: str | None = None, n: int | None = None, doc: Any = None) -> dict[str, Any]:
    return {"id": id, "city": city, "n": n, "doc": doc}


def facts(tmp_path: Path, messages: list[Any]) -> list[Fact]:
    """Of each fact its key, city, n, whether it takes a row away, what it lacks, and the number of its message."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in messages))
    rows = decoded(listed(path), collection()).to_pylist()
    rows.sort(key=lambda fact: (fact["_row"] if fact["_row"] >= 0 else -1.5 - fact["_row"], not fact["_deleted"]))
    names = ("id", "city", "n", "_deleted", "_lacks", "_row")
    return [tuple(fact[name] for name in names) for fact in rows]


A, B = row(1, "a", 1), row(1, "b", 2)
CASES: dict[str, tuple[list[Any], list[Fact]]] = {
    "insert": ([message("c", None, A)], [(1, "a", 1, False, None, 0)]),
    "a row of a snapshot": ([message("r", None, A)], [(1, "a", 1, False, "r", 0)]),
    "update": (
        [message("c", None, row(2), 1, 6), message("u", A, B)],
        [(2, None, None, False, None, 0), (1, "b", 2, False, "-", 1)],
    ),
    "update of the first transaction, which may have begun before": (
        [message("u", A, B)],
        [(1, "a", 1, True, None, -1), (1, "b", 2, False, None, 0)],
    ),
    "update without a before-image": ([message("u", None, B)], [(1, "b", 2, False, "-", 0)]),
    "update whose before-image has only the key": ([message("u", row(1, "", 0), B)], [(1, "b", 2, False, "-", 0)]),
    "two updates of a key": (
        [message("c", None, row(2), 1, 6), message("u", A, B, 2), message("u", B, A, 3)],
        [
            (2, None, None, False, None, 0),
            (1, "a", 1, True, None, -2),
            (1, "b", 2, False, None, 1),
            (1, "b", 2, True, None, -3),
            (1, "a", 1, False, None, 2),
        ],
    ),
    "delete": ([message("d", A, None)], [(1, "a", 1, True, None, 0)]),
    "delete with only the key": ([message("d", row(1), None)], [(1, None, None, True, "*", 0)]),
    "delete with only the key, zeros where null may not be": (
        [message("d", row(1, "", 0), None)],
        [(1, None, None, True, "*", 0)],
    ),
    "another key": ([message("u", A, row(2, "a", 1))], [(1, "a", 1, True, None, 0), (2, "a", 1, False, None, 0)]),
    "another key, only the key": (
        [message("u", row(1), row(2, "a", 1))],
        [(1, "a", 1, True, "*", 0), (2, "a", 1, False, None, 0)],
    ),
    "another key, as Debezium writes it": (
        [message("d", row(1), None), None, message("c", None, row(2, "a", 1))],
        [(1, "a", 1, True, "*", 0), (2, "a", 1, False, None, 2)],
    ),
    "insert and delete with only the key": (
        [message("c", None, A, 1), message("d", row(1), None, 2)],
        [(1, "a", 1, False, None, 0), (1, None, None, True, "*", 1)],
    ),
    "holes": (
        [message("c", None, row(2), 1, 6), message("u", None, row(1, UNAVAILABLE, 3, UNAVAILABLE))],
        [(2, None, None, False, None, 0), (1, None, 3, False, "-,2,4", 1)],
    ),
    "a hole of an array": ([message("c", None, row(1, "a", 3, [UNAVAILABLE]))], [(1, "a", 3, False, "4", 0)]),
    "a delete whose before-image lacks what was not logged, as Oracle writes it": (
        [message("d", row(1, UNAVAILABLE, 1), None)],
        [(1, None, 1, True, "2", 0)],
    ),
    "another key, likewise": (
        [message("u", row(1, UNAVAILABLE, 1), row(2, UNAVAILABLE, 1))],
        [(1, None, 1, True, "2", 0), (2, None, 1, False, "2", 0)],
    ),
    "an update of the first transaction, likewise": (
        [message("u", row(1, UNAVAILABLE, 1), row(1, UNAVAILABLE, 2))],
        [(1, None, 1, True, "2", -1), (1, None, 2, False, "2", 0)],
    ),
}
WORD = "n/a\u00df"
FORMS = [
    (ColumnType.STRING, [WORD, "bi9hw58=", "6e2f61c39f", f'{{"{WORD}":"{WORD}"}}']),
    (ColumnType.BYTES, [WORD, "bi9hw58="]),
    (
        ColumnType.JSON,
        [WORD, [WORD], ["bi9hw58="], {WORD: WORD}, [110, 47, 97, -61, -97], ["19d46ad7-5da4-3690-b9b1-9b83f5614870"]],
    ),
]
"""Of a type how Debezium writes a placeholder, without the library that writes it here."""


@pytest.mark.parametrize(("column_type", "values"), FORMS)
@pytest.mark.parametrize("setting", [WORD, "hex:6e2f61c39f"])
def test_another_placeholder_is_one_in_each_of_its_forms(
    tmp_path: Path, column_type: ColumnType, values: list[Any], setting: str
) -> None:
    declared = collection()
    source = replace(declared.landed.source, unavailable=setting)
    declared = replace(declared, value=(Column("x", column_type, 2),), origin=replace(declared.landed, source=source))
    path = tmp_path / "a.jsonl"
    messages = [message("c", None, {"id": at, "x": value}, at) for at, value in enumerate(values)]
    path.write_text("".join(json.dumps(each) + "\n" for each in messages))
    rows = decoded(listed(path), declared).to_pylist()
    assert [(fact["x"], fact["_lacks"]) for fact in rows] == [(None, "2")] * len(values)


@pytest.mark.parametrize("case", CASES)
def test_what_a_message_says(tmp_path: Path, case: str) -> None:
    messages, expected = CASES[case]
    assert facts(tmp_path, messages) == expected


@pytest.mark.parametrize("connector", IDS)
def test_the_transaction_is_named_as_the_connector_has_it(tmp_path: Path, connector: str) -> None:
    said = message("c", None, A, tx=None, connector=connector, **IDS[connector])
    if "txId" not in IDS[connector]:
        del said["source"]["txId"]
    read = {**said, "op": "r"}
    beside = {**said, "transaction": {"id": "file=1,pos=2", "total_order": 1}}
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (said, beside, read)))
    names = decoded(listed(path), collection()).column("_transaction").to_pylist()
    own = NAMES.get(connector)
    assert names == [own, "file=1,pos=2" if connector in ("mysql", "mariadb") else own, None]


MOVE = [message("d", row(1), None), None, message("c", None, row(2, "a", 1))]
"""A row whose key changes from 1 to 2, by messages that have only the key."""
LONE = [
    [*MOVE, message("d", row(2), None, 2)],
    [message("u", row(1), row(2, "a", 1)), message("u", None, row(2, "b", 1), 2), message("d", row(2), None, 3)],
]


@pytest.mark.parametrize("messages", LONE)
@pytest.mark.parametrize("block", [jsonlfile.BLOCK_BYTES, 1])
def test_a_delete_that_could_mean_either_of_two_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: list[Any], block: int
) -> None:
    monkeypatch.setattr(jsonlfile, "BLOCK_BYTES", block)
    line = len(messages)
    with pytest.raises(BadFile, match=rf"line {line}: op d of key \(2,\) has only the key.*REPLICA IDENTITY FULL"):
        facts(tmp_path, messages)
    separate = [*messages[:-1], message("d", row(2), None, 9, 8)]
    assert facts(tmp_path, separate)[-1][:1] == (2,)
    onward = [*messages, message("c", None, row(3, "a", 1), messages[-1]["source"]["lsn"])]
    assert facts(tmp_path, onward)[-1][0] == 3


def test_a_transaction_has_its_last_event_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that goes on in the next block, and where nothing else says when it was committed."""
    monkeypatch.setattr(jsonlfile, "BLOCK_BYTES", 300)
    stages = [(6, 1), (7, 2), (7, 3), (7, 9), (8, 10), (None, 3), (9, 11)]
    said = [message("c", None, row(at), at, tx, connector="mysql") for at, (tx, _) in enumerate(stages)]
    for each, (tx, ts) in zip(said, stages, strict=True):
        each["source"] |= {"ts_ms": ts, "gtid": tx and f"{tx}"}
        del each["source"]["txId"]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in said))
    blocks = list(decode(fetch(listed(path)), collection()))
    times = {r["_row"]: r["source.ts_ms"].microsecond // 1000 for block in blocks for r in block.to_pylist()}
    assert [times[at] for at in range(7)] == [1, 9, 9, 9, 10, 3, 11]
    assert len(blocks) > 1

"""Which fields of a file are a column: `from`, `from_path` and `optional`, by format and envelope."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pure.ingest.landed import decoded
from tidemark.arrow.decode.source import BadFile, decode, undeclared
from tidemark.arrow.decode.source import fetch as fetched
from tidemark.config.collection_file import load
from tidemark.model.collection import Collection
from tidemark.storage.landing import list_named

pytestmark = pytest.mark.pure

Rows = Sequence[dict[str, Any]]
FORMS = ("csv", "jsonl", "parquet")


def declared(folder: Path, form: str, columns: dict[str, Any], **more: Any) -> Collection:
    """A collection with the key k, and columns of the value declared as people do it."""
    source = {"path": "{{ landing }}/*", "format": form, "envelope": more.pop("envelope", "append")}
    source |= more.pop("source", {})
    value = [name for name in columns if name not in ("k", *more.get("inputs", ()))]
    more.pop("inputs", None)
    body = {"name": "things", "key": ["k"], "value": value, "start": "2024-01-01", "time": "arrival", "source": source}
    path = folder / "things.yaml"
    path.write_text(json.dumps(body | {"columns": {"k": "int", **columns}} | more))
    return load(path)


def land(path: Path, form: str, rows: Rows) -> Path:
    """A file of rows; its columns are those of the first row, of JSON lines those of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "csv":
        lines = io.StringIO()
        csv.writer(lines).writerows([[*rows[0]], *([row[name] for name in rows[0]] for row in rows)])
        path.write_text(lines.getvalue(), newline="")
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


CODIGO = {"codigo": {"type": "string", "from": ["Codigo", "Código"]}}
NESTED = {"city": {"type": "string", "from": "address.city"}}
BOTH = {"v": {"type": "int", "from": ["new", "old"]}}
EITHER = {"v": {"type": "int", "from": ["new", "old"], "optional": True}}
TWO = {"v": {"type": "int", "from": "n"}, "w": {"type": "int", "from": "n"}}
MAY_LACK = {"v": {"type": "int", "optional": True}, "w": {"type": "json", "optional": True}}
ODD = {"v": {"type": "int", "from": 'a "b", c'}, "w": {"type": "int", "from": ""}}

# What it is, the forms, the columns, the rows of the file, and the values of the columns; or how a refusal begins.
CASES: list[tuple[str, str, dict[str, Any], Rows, Any]] = [
    ("a name beyond ASCII", "csv jsonl parquet", CODIGO, [{"k": 1, "Código": "x"}], [("x",)]),
    ("another name", "csv jsonl parquet", {"v": {"type": "int", "from": "V V"}}, [{"k": 1, "V V": 5}], [(5,)]),
    ("names with quotes, and none", "csv jsonl parquet", ODD, [{"k": 1, 'a "b", c': 5, "": 6}], [(5, 6)]),
    ("the name of the column itself is another field", "csv jsonl parquet", {"v": {"type": "int", "from": "n"}},
     [{"k": 1, "v": 4, "n": 5}], [(5,)]),
    ("a dot in the name", "csv jsonl parquet", NESTED, [{"k": 1, "address.city": "a"}], [("a",)]),
    ("within another field", "jsonl parquet", NESTED, [{"k": 1, "address": {"city": "a"}}], [("a",)]),
    ("within another field, beside a dot", "parquet", NESTED | CODIGO | {"w": {"type": "int", "from": "w.w"}},
     [{"k": 1, "address": {"city": "a"}, "Codigo": "x", "w.w": 5}], [("a", "x", 5)]),
    ("no nested field in CSV", "csv", NESTED, [{"k": 1, "address": "a"}],
     "column city (from address.city) is missing; the file has k, address; if it may be missing, write optional: true"),
    ("the first that is there", "csv jsonl parquet", BOTH, [{"k": 1, "old": 5}, {"k": 2, "old": 6}], [(5,), (6,)]),
    ("both, and alike", "csv jsonl parquet", BOTH, [{"k": 1, "new": 5, "old": 5}], [(5,)]),
    ("of each row", "jsonl", BOTH, [{"k": 1, "old": 5}, {"k": 2, "new": 6}, {"k": 3, "new": None}],
     [(5,), (6,), (None,)]),
    ("of each row, names with dots", "jsonl", NESTED,
     [{"k": 1, "address.city": "a"}, {"k": 2, "address": {"city": "b"}}, {"k": 3, "address": None}],
     [("a",), ("b",), (None,)]),
    ("a text above a name with a dot", "jsonl", NESTED | {"v": {"type": "string", "from": "address"}},
     [{"k": 1, "address.city": "a", "address": "b"}], [("a", "b")]),
    ("two from one", "csv jsonl parquet", TWO, [{"k": 1, "n": 5}], [(5, 5)]),
    ("two from one, of two types", "jsonl", {"v": {"type": "float", "from": "n"}, "w": {"type": "int", "from": "n"}},
     [{"k": 1, "n": 5}], [(5.0, 5)]),
    ("missing", "csv jsonl parquet", MAY_LACK, [{"k": 1}], [(None, None)]),
    ("missing of some rows", "jsonl", MAY_LACK, [{"k": 1}, {"k": 2, "v": 5}], [(None, None), (5, None)]),
    ("none of several", "csv jsonl parquet", EITHER, [{"k": 1, "n": 5}], [(None,)]),
    ("missing and not optional", "csv parquet", BOTH, [{"k": 1, "n": 5}],
     "column v (from new, old) is missing; the file has k, n; if it may be missing, write optional: true at"),
    ("missing and not optional, in lines", "jsonl", BOTH, [{"k": 1, "n": 5}],
     "column v (from new, old) is missing from every line; the first line has k, n; if it may be missing, write opt"),
    ("two that differ", "jsonl", BOTH, [{"k": 1, "new": 5, "old": 5}, {"k": 2, "new": 5, "old": 6}],
     "line 2: column v is 5 in new and 6 in old; leave one of them out of `from`"),
    ("two that differ, in columns", "csv", BOTH, [{"k": 1, "new": 5, "old": 5}, {"k": 2, "new": 5, "old": 6}],
     "line 3: column v is '5' in new and '6' in old"),
    ("two that differ, in rows", "parquet", BOTH, [{"k": 1, "new": 5, "old": 5}, {"k": 2, "new": 5, "old": 6}],
     "row 2: column v is 5 in new and 6 in old"),
    ("a null and a value", "jsonl", BOTH, [{"k": 1, "new": None, "old": 6}],
     "line 1: column v is null in new and 6 in old"),
    ("a null and a value, in columns", "parquet", BOTH, [{"k": 1, "new": 5, "old": None}],
     "row 1: column v is 5 in new and None in old"),
    ("a value that does not fit", "csv jsonl", {"v": {"type": "int", "from": "n"}}, [{"k": 1, "n": "x"}],
     "column v is declared int and holds 'x'"),
    ("a field written twice in Parquet's words", "parquet", NESTED,
     [{"k": 1, "address": {"city": "a"}, "address.city": "b"}],
     "there is a field address.city and one within another that Parquet writes the same"),
    ("a key by another name", "csv jsonl parquet", {"k": {"type": "int", "from": "id"}}, [{"id": 7}], [(7,)]),
    ("optional is null on a row of words", "csv", MAY_LACK, [{"k": 1, "v": ""}], [(None, None)]),
]  # fmt: skip
WAYS = [(case, form) for case in CASES for form in case[1].split()]


@pytest.mark.parametrize(("case", "form"), WAYS, ids=[f"{case[0]}-{form}" for case, form in WAYS])
def test_a_column_is_the_first_of_its_fields_that_is_there(tmp_path: Path, case: Any, form: str) -> None:
    _, _, columns, rows, result = case
    collection = declared(tmp_path, form, columns)
    path = land(tmp_path / "file", form, rows)
    if isinstance(result, str):
        with pytest.raises(BadFile) as refusal:
            decoded(path, collection)
        assert result in refusal.value.reason, refusal.value.reason
        return
    read = decoded(path, collection)
    assert [tuple(row[name] for name in columns) for row in read.to_pylist()] == result
    content = fetched(list_named(str(path), str(tmp_path))[0])
    names = {"the name of the column itself is another field": ["v"], "none of several": ["n"]}
    assert undeclared(content, collection) == names.get(case[0], [])


def message(op: str, before: Any, after: Any, **source: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"ts_ms": 1_704_103_200_000, **source}}


IMAGES = {
    "k": {"type": "int", "from": "Id"},
    "city": {"type": "string", "from": ["City", "address.city"], "optional": True},
    "happened": {"type": "timestamp", "from": "source.ts_ms", "unit": "ms"},
    "lsn": {"type": "int", "from": "source.lsn", "optional": True},
    "region": {"type": "string", "from_path": "region"},
}
SAID = [
    message("c", None, {"Id": 1, "City": "a"}, lsn=1),
    message("c", None, {"Id": 2, "City": "b"}, lsn=2),
    message("u", {"Id": 2}, {"Id": 3, "City": None}, lsn=3),
    message("d", {"Id": 1}, None, lsn=4),
]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_images_and_messages_have_fields_by_other_names(tmp_path: Path, form: str, wrapped: bool) -> None:
    more = {"event_time": {"column": "happened"}, "source": {"order_by": ["lsn"]}, "inputs": ("happened", "lsn")}
    collection = declared(tmp_path, form, IMAGES, envelope="debezium", **more)
    rows = [{"schema": None, "payload": each} for each in SAID] if wrapped else SAID
    path = land(tmp_path / "region=eu" / "file", form, rows)
    read = list(decode(fetched(list_named(str(path), str(tmp_path))[0]), collection))
    facts = [(row["k"], row["city"], row["region"], row["lsn"], row["_deleted"]) for row in read[0].to_pylist()]
    assert facts == [
        (2, None, None, 3, True),  # the key that was before comes first
        (1, "a", "eu", 1, False),
        (2, "b", "eu", 2, False),
        (3, None, "eu", 3, False),
        (1, None, None, 4, True),
    ]
    assert {row["happened"].isoformat() for row in read[0].to_pylist()} == {"2024-01-01T10:00:00+00:00"}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_what_no_message_has_is_optional_or_refused(tmp_path: Path, form: str) -> None:
    more = {"event_time": {"column": "source.ts_ms"}, "source": {"order_by": []}, "envelope": "debezium"}
    path = land(tmp_path / "file", form, [message("c", None, {"k": 1, "v": 5})])
    column = {"type": "string", "from": "City"}
    assert (
        decoded(path, declared(tmp_path, form, {"city": column | {"optional": True}}, **more))["city"][0].as_py()
        is None
    )
    with pytest.raises(
        BadFile, match=r"column city \(from City\) is (in no message|missing; .*); if it may be missing"
    ):
        decoded(path, declared(tmp_path, form, {"city": column}, **more))


IN_PATHS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("a folder", {"from_path": "region"}, "dt=1/region=eu/a", "eu"),
    ("an escaped folder", {"from_path": "a b"}, "a%20b=x%2Fy%20z/a", "x/y z"),
    ("a folder that is null", {"from_path": "region"}, "region=__HIVE_DEFAULT_PARTITION__/a", None),
    ("a number", {"from_path": "n", "type": "int"}, "n=007/a", 7),
    ("a date of a format", {"from_path": "on", "type": "date", "format": "%d.%m.%Y"}, "on=31.12.2024/a", "2024-12-31"),
    ("a pattern", {"from_path": r"store-(\d+)[(]x"}, "store-17(x/a", "17"),
    ("a pattern with a group of no value", {"from_path": "(?:a|b)_([a-z]+)$"}, "b_eu", "eu"),
    ("nothing, optional", {"from_path": "region", "optional": True}, "a", None),
    (
        "nothing",
        {"from_path": "region"},
        "regions=x/a",
        "column v is not in the file's path: it is from_path: a folder",
    ),
    ("the name of a file", {"from_path": "region"}, "region=x", "column v is not in the file's path"),
    ("twice", {"from_path": "region"}, "region=x/region=y/a", "column v is twice in the file's path"),
    ("no number", {"from_path": "n", "type": "int"}, "n=eu/a", "column v is declared int and holds 'eu'"),
    (
        "no match",
        {"from_path": "x([0-9])"},
        "y1",
        "column v is not in the file's path: it is from_path: x([0-9]); if it",
    ),
]


@pytest.mark.parametrize("case", IN_PATHS, ids=[case[0] for case in IN_PATHS])
@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_in_the_path_of_files(tmp_path: Path, case: Any, form: str) -> None:
    _, column, place, result = case
    collection = declared(tmp_path, form, {"v": column})
    path = land(tmp_path / "landing" / place, form, [{"k": 1}, {"k": 2}])
    content = fetched(list_named(str(path), str(tmp_path / "landing"))[0])
    if isinstance(result, str) and result.startswith("column "):
        with pytest.raises(BadFile) as refusal:
            list(decode(content, collection))
        assert refusal.value.reason.startswith(result), refusal.value.reason
        return
    read = pa.Table.from_batches(list(decode(content, collection)))["v"].to_pylist()
    assert [str(value) if column.get("type") == "date" else value for value in read] == [result] * 2


def test_rows_that_are_left_out_are_looked_at_by_other_names(tmp_path: Path) -> None:
    columns = {"v": {"type": "int", "from": "V"}, "kind": {"type": "string", "from": ["Kind", "kind.of"]}}
    for form in FORMS:
        only = declared(tmp_path, form, columns, source={"only": "kind = 'a'"})
        path = land(tmp_path / f"file.{form}", form, [{"k": 1, "V": 5, "Kind": "a"}, {"k": 2, "V": 6, "Kind": "b"}])
        assert decoded(path, only)["v"].to_pylist() == [5]

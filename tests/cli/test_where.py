"""A condition selects the same rows at every door, however it is spelled: columns of each type, operators, doors."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

import tidemark
from support.budget import budget
from tests.cli.conftest import Shell, a_shell
from tidemark.config.airflow import TaskSection
from tidemark.datasource.options import Options, question

TYPES = """\
name: types
key: [k]
value: [b, i, f, s, d, t, raw, doc, m]
columns:
  {k: int, b: bool, i: int, f: float, s: string, d: date, t: timestamp, raw: bytes, doc: json, m: "decimal(6, 2)",
   at: timestamp}
start: 2024-01-01
time: {column: at}
source: {path: "{{ landing }}/types/*.jsonl", format: jsonl, envelope: append}
"""
NAMES = ("b", "i", "f", "s", "d", "t", "raw", "doc", "m")
LOW = (False, -7, -0.5, "5", "2013-01-01", "2013-01-01T00:00:00Z", "/wA=", 5, "0.10")
HIGH = (True, 12, 1e300, "s", "2024-02-29", "2024-02-29T01:02:03.000004Z", "AP8=", {"a": [1, "x y"]}, "99.00")
NULL = (None, None, None, "null", None, None, None, None, None)
ROWS = [{"k": k, **dict(zip(NAMES, row, strict=True))} for k, row in enumerate((LOW, HIGH, NULL))]
EITHER = {"=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne}
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def text_of(value: Any) -> str:
    """A value as answers write it."""
    return value if isinstance(value, str) else json.dumps(value)


def literal(name: str, value: Any) -> str:
    """A value as the grammar writes it."""
    quoted = "'" + text_of(value).replace("'", "''") + "'"
    return quoted if name in ("s", "d", "t", "raw", "doc") else text_of(value).upper()


def fitting(name: str, fits: Any) -> list[int]:
    return [row["k"] for row in ROWS if row[name] is not None and fits(row[name])]


def table() -> Iterator[tuple[str, Mapping[str, Any], list[int]]]:
    """Conditions as text, what is the same as a mapping where there is one, and the keys of the rows that fit."""
    for name, value in ((n, row[n]) for n, row in product(NAMES, ROWS) if row[n] is not None):
        said, equal = literal(name, value), fitting(name, lambda other, value=value: other == value)
        mapping = {name: [value] if name == "doc" else text_of(value)}
        if not isinstance(value, dict):
            yield f"{name}={text_of(value)}", mapping, equal
        spellings = ("{}={}", "{}={} ", "{} = {}", '"{}" = {}', "{}=={}", "{} IN ({})", "NOT {}<>{}", "({}={})")
        for spelled in spellings:
            yield spelled.format(name, said), mapping, equal
        for op, compare in ({} if name in ("b", "doc", "raw") else ORDER).items():
            number = float if name == "m" else lambda same: same
            keys = fitting(name, lambda other, c=compare, v=value, n=number: c(n(other), n(v)))
            yield f"{name}{op}{said}", {}, keys
        yield f"{name}!={said}", {}, fitting(name, lambda other, value=value: other != value)
    for name in NAMES:
        nulls = [row["k"] for row in ROWS if row[name] is None]
        yield f"{name} IS NULL", {name: None}, nulls
        if name != "s":
            yield f"{name}=null", {name: None}, nulls
    yield "s=d", {"s": "d"}, []  # the text: no column beside a column
    yield "i=5.0", {}, []
    yield "i=1.2e1", {}, [1]
    yield "i=+12", {"i": "+12"}, [1]
    yield "f=nan", {"f": "nan"}, []
    yield "s=", {"s": ""}, []
    yield "s='5' AND i=-7", {"s": "5", "i": -7}, [0]
    yield "d=20130101", {"d": "2013-01-01"}, [0]


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = a_shell(tmp_path_factory.mktemp("where"))
    shell.ok("init", shell.declared(TYPES))
    shell.land("types/a.jsonl", "".join(json.dumps({**row, "at": "2024-01-01T01:00:00Z"}) + "\n" for row in ROWS))
    shell.moved("types", "2024-01-01")
    return shell


def doors(shell: Shell, where: Any) -> Iterator[tuple[str, Any]]:
    """What each door answers to a condition as text: calls that give a table, by the name of the door."""
    types = tidemark.open(str(shell.root), "types")
    options = Options({"path": f"{shell.root}/types", "where": where})
    section = TaskSection.model_validate({"call": "a:b", "where": where})
    yield "Python", lambda: types.as_of(where=where).to_arrow()
    yield "a list", lambda: types.as_of(where=[where, where]).to_arrow()
    yield "changes", lambda: types.changes(where=where).to_arrow()
    yield "dataset", lambda: types.dataset(where=where).to_table()
    yield "Spark", lambda: question(types, options).to_arrow()
    yield "a collection file", lambda: types.as_of(where=section.where).to_arrow()


def test_every_door_gives_the_same_rows(types: Shell) -> None:
    cases = list(table())
    assert len(cases) > 250
    opened = tidemark.open(str(types.root), "types")
    for text, mapping, keys in cases[:: budget(ci=4, deep=1)]:
        answers = {door: sorted(call()["k"].to_pylist()) for door, call in doors(types, text)}
        if mapping:
            answers["a mapping"] = opened.as_of(where=mapping).to_arrow()["k"].to_pylist()
        assert answers == dict.fromkeys(answers, keys), text
    for text, _, keys in cases[:: budget(ci=20, deep=5)]:
        for command in ("as-of", "changes"):
            assert [row["k"] for row in types.json(command, "types", "--where", text)["rows"]] == keys, text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s=UA AND i=5", "found 'UA' at position 3"),
        ("s = UA", "found 'UA' at position 5"),
        ("s ='UA", "a text that is never closed"),
        ("s==UA", "found 'UA' at position 4"),
        ("s=New York", "found 'New' at position 3"),
        ("s=a,b", "found 'a' at position 3"),
        ('s="a"', "found '\"a\"' at position 3"),
        ("s=`a`", "'`' is not understood at position 3"),
        ("s=\u2018a\u2019", "is not understood at position 3"),
        ("s=f(x)", "found 'f' at position 3"),
        ('doc={"a":1}', "'{' is not understood at position 5"),
        ("s=<5", "found '<' at position 3"),
        ("t=2013-01-01 00:00:00", "found '-01' at position 7"),
        ("s", "expected a comparison"),
        ("", "expected a column name"),
        ("d='soon'", "column d, of type date, with 'soon'; write '2013-01-02'"),
        ("s = 5", "column s, of type string, with 5; write a text in single quotes"),
        ("i=many", "column i is of type int; 'many' is no value of it"),
        ("i=", "column i is of type int; '' is no value of it"),
        ("b=5", "column b is of type bool; '5' is no value of it"),
        ("x=5", "no column 'x'"),
        ("x=a", "no column 'x'"),
        ("_event_time=2024", "no column '_event_time'"),
    ],
)
def test_what_no_door_takes(types: Shell, text: str, says: str) -> None:
    for door, call in doors(types, text):
        if door != "changes" or "_event_time" not in text:
            with pytest.raises(tidemark.InvalidUsage) as refusal:
                call()
            both = "write COLUMN=VALUE, or a condition such as COLUMN = 'VALUE'" in str(refusal.value)
            assert both == (" at position " in str(refusal.value)), door
    assert says in types.refused("as-of", "types", "--where", text)
    target = types.files / "out.csv"
    types.refused("export", "types", "--to", str(target), "--where", text)
    assert not target.exists()

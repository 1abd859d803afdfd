"""The two parsers of JSON lines agree: where Arrow's is trusted, Python's gives the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.pure.ingest.landed import content_of
from tidemark.arrow.decode import jsonlfile
from tidemark.arrow.decode.content import BadFile
from tidemark.model.collection import ColumnType, DecimalType

pytestmark = pytest.mark.pure

COLUMNS = [
    jsonlfile.Field(name, declared, str(declared))
    for name, declared in {
        "i": ColumnType.INT,
        "f": ColumnType.FLOAT,
        "s": ColumnType.STRING,
        "b": ColumnType.BOOL,
        "d": DecimalType(5, 2),
    }.items()
]
SCHEMA = pa.schema([(column.name, jsonlfile.raw_type(column.type)) for column in COLUMNS])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False)
    | st.just(10**400)
    | st.text(st.sampled_from('ab{}[]",:\\\n\té€😀 n'), max_size=6)
)
NUMBERS = st.from_regex(r"[+-]?[0-9]{0,6}\.?[0-9]{0,4}([eE][+-]?[0-9]{0,3})?", fullmatch=True)
NESTED = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("isz"), inner, max_size=2)
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | st.integers(-(2**63), 2**63 - 1) | SCALARS,
        "f": st.none()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.integers()
        | st.sampled_from(["NaN", "Infinity", "-Infinity"])
        | SCALARS,
        "s": st.none() | st.text(max_size=4) | SCALARS,
        "b": st.none() | st.booleans() | SCALARS,
        "d": st.integers(-(10**6), 10**6).map(lambda units: units / 1000) | NUMBERS | SCALARS,
        "z": NESTED,
    },
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Mostly one object a line, sometimes something else."""
    texts = []
    for _ in range(draw(st.integers(1, 4))):
        value: Any = draw(st.one_of(OBJECTS, OBJECTS, OBJECTS, NESTED))
        compact = draw(st.booleans())
        text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=(",", ":") if compact else None)
        texts.append(text + draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", " \n", "", " ", ","])))
    return "".join(texts).encode("utf-8", "surrogatepass")


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(block=lines())
def test_what_arrow_is_trusted_with_python_reads_alike(tmp_path: Path, block: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(block)
    fast = jsonlfile._fast(block, SCHEMA)
    event("fast" if fast is not None else "exact")
    if fast is None:
        return
    exact = jsonlfile._exact(content_of(path), block, 1, COLUMNS, SCHEMA, False)
    assert exact.to_pylist() == fast.to_pylist()


def test_good_lines_are_read_by_arrow() -> None:
    assert jsonlfile._fast(b'{"i":1,"s":"{}","z":{"a":[{}]}}\n{"i":2, "s": "}, {" }', SCHEMA) is not None


@pytest.mark.parametrize("text", ['"}null"', '"}{"', '"} {"', '"} n"'])
def test_texts_that_look_like_trouble_are_read_exactly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(f'{{"i":1,"f":1,"b":true,"s":{text}}}\n')
    ((batch, _),) = jsonlfile.read_blocks(content_of(path), COLUMNS[:4])
    assert batch.column("s").to_pylist() == [json.loads(text)]


def test_lines_are_numbered_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlfile, "BLOCK_BYTES", 40)
    path = tmp_path / "file"
    good = '{"i":1,"f":1,"b":true,"s":"x"}\n'
    path.write_text(good * 5 + "\n" + good * 5)
    batches = list(jsonlfile.read_blocks(content_of(path), COLUMNS[:4]))
    assert [int(row) for _, rows in batches for row in rows] == list(range(10))
    assert len(batches) > 3
    assert [jsonlfile.line_of(content_of(path), row) for row in (0, 4, 5, 9)] == [1, 5, 7, 11]
    path.write_text(good * 5 + "\n" + good * 3 + '{"i":"x"}\n' + good)
    with pytest.raises(BadFile, match="line 10: column i"):
        list(jsonlfile.read_blocks(content_of(path), COLUMNS[:4]))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlfile, "BLOCK_BYTES", 10)
    monkeypatch.setattr(jsonlfile, "MAX_LINE_BYTES", 100)
    path = tmp_path / "file"
    path.write_text('{"i":1}\n{"s":"' + "x" * 500)
    with pytest.raises(BadFile, match="line 2: longer than 100 bytes"):
        list(jsonlfile.read_blocks(content_of(path), COLUMNS[:4]))

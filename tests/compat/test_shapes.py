"""Nobody changes the shape of what is stored without raising its format: shapes/<n>.json holds the shape of format n.

Where a shape differs: describe it in docs/format.md, and raise FORMAT and add a step (storage/documents/upgrade.py)
unless the format is not released yet, which is so as long as it has no collections in tests/compat/v<n>. Then
`REWRITE=1 tools/run pytest tests/compat/test_shapes.py` writes the shape again, and the diff is what is reviewed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from pydantic import ConfigDict, TypeAdapter

from support.world import collection
from tests.compat.make_v1 import V1
from tidemark.arrow.decode.source import decoded_schema
from tidemark.arrow.kernels.lateness import late_schema
from tidemark.arrow.rows.schema import unsealed_schema, updates_schema
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, Format
from tidemark.plan.collect import GarbagePlan
from tidemark.plan.retain import ReadAsked
from tidemark.storage.documents.codec import VersionRecord
from tidemark.storage.documents.upgrade import FORMAT, Kind, upgraded
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.sidecars.commit_runs import StoredCommits

SHAPES = Path(__file__).parent / "shapes"
STORED: dict[Kind, Any] = {
    Kind.VERSION: VersionRecord,
    Kind.PLAN: GarbagePlan,
    Kind.PARTS: parts_table.SHAPE,
    Kind.LEDGER: ledger.SHAPE,
    Kind.READ: ReadAsked,
    Kind.COMMITS: StoredCommits,
}
FIRST_IN = {Kind.COMMITS: 4}
"""Kinds that the first formats did not have."""
FORBIDS = ConfigDict(extra="forbid")


def shape_of_today() -> dict[str, Any]:
    documents = {
        kind.name: _bare(TypeAdapter(tuple[shape], config=FORBIDS).json_schema()) for kind, shape in STORED.items()
    }
    return {"documents": documents, "columns": dict(_columns())}


def _bare(schema: Any, *, of_fields: bool = False) -> Any:
    """Without what is said for people, and without names that nothing refers to. A field may be called as these are."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if of_fields or name not in ("title", "description")}
    return {name: _bare(value, of_fields=name in ("properties", "$defs")) for name, value in kept.items()}


def _columns() -> Iterator[tuple[str, list[str]]]:
    """The columns of every kind of Parquet file, of each declared type."""
    value = (*(Column(f"a_{each}", each) for each in ColumnType), Column("a_decimal", DecimalType(12, 2)))
    for envelope in (Envelope.APPEND, Envelope.UPSERT, Envelope.SNAPSHOT):
        declared = collection(envelope, format=Format.PARQUET, value=value)
        yield f"unsealed, {envelope}", _lines(unsealed_schema(declared))
        if envelope is Envelope.UPSERT:
            yield "trace", _lines(updates_schema(declared))
            yield "late", _lines(late_schema(decoded_schema(declared)))


def _lines(schema: pa.Schema) -> list[str]:
    return [f"{f.name}: {f.type}{'' if f.nullable else ' not null'} {_metadata(f.metadata)}".strip() for f in schema]


def _metadata(metadata: dict[bytes, bytes] | None) -> str:
    return ", ".join(f"{name.decode()}={value.decode()}" for name, value in sorted((metadata or {}).items()))


def recorded(number: int) -> dict[str, Any]:
    shape: dict[str, Any] = json.loads((SHAPES / f"{number}.json").read_text())
    return shape


def test_no_shape_changes_under_its_number():
    file, shape = SHAPES / f"{FORMAT}.json", shape_of_today()
    released = V1.with_name(f"v{FORMAT}").exists()
    if os.environ.get("REWRITE") and not released:
        file.write_text(json.dumps(shape, indent=1, sort_keys=True) + "\n")
    advice = "is released: raise FORMAT" if released else "is not released: see the head of this file"
    assert shape == recorded(FORMAT), f"the shape of what is stored has changed, and format {FORMAT} {advice}"


def test_every_format_and_every_kind_of_document_is_there():
    assert sorted(path.name for path in SHAPES.iterdir()) == sorted(f"{n}.json" for n in range(1, FORMAT + 1))
    assert set(STORED) == set(Kind)
    for number in range(1, FORMAT + 1):
        later = {kind.name for kind, first in FIRST_IN.items() if number < first}
        assert set(recorded(number)["documents"]) == set(Kind.__members__) - later


KEYS = {
    Kind.VERSION: r"versions/",
    Kind.PLAN: r"collect/",
    Kind.PARTS: r"data/[^/]+/parts-",
    Kind.LEDGER: r"ledger/",
    Kind.READ: r"reads/",
    Kind.COMMITS: r"commits/",
}


def _validators(number: int) -> dict[Kind, Any]:
    documents = recorded(number)["documents"]
    return {kind: jsonschema.Draft202012Validator(documents[kind.name]) for kind in Kind if kind.name in documents}


@pytest.mark.parametrize("number", [int(path.stem) for path in sorted(SHAPES.iterdir())])
def test_what_a_release_wrote_has_the_shape_of_its_format_and_gets_that_of_today(number: int):
    """By the schemas alone: a step that forgets a field, or leaves one behind, is seen here."""
    seen, theirs, ours = set(), _validators(number), _validators(FORMAT)
    for path in sorted(V1.with_name(f"v{number}").rglob("*.json")):
        key = path.relative_to(V1.with_name(f"v{number}")).as_posix().partition("/")[2]
        kind = next((kind for kind, pattern in KEYS.items() if re.match(pattern, key)), None)
        if kind is None:
            continue
        document = json.loads(path.read_bytes())
        if isinstance(document, dict):
            document = {name: value for name, value in document.items() if name not in ("format", "sha256")}
        theirs[kind].validate([document])
        ours[kind].validate([upgraded(kind, document, number)])
        seen.add(kind)
    assert seen >= ({Kind.VERSION, Kind.PLAN, Kind.PARTS, Kind.LEDGER} if number < FORMAT else set())

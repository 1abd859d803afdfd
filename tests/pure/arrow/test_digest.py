"""The digest against a second implementation, in plain Python, written from the module's text alone."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, KEYED, SMALL, VALUE, batch, collection, of_facts, of_updates, rows, updates
from tests.support.budget import laws
from tidemark.arrow.rows.consolidate import consolidated, forwarded
from tidemark.arrow.rows.digest import digest, row_hashes
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import sort_columns
from tidemark.model.collection import Envelope
from tidemark.model.fact import Fact
from tidemark.model.frontier import CompactionFunction
from tidemark.model.update import Scalar, Update

pytestmark = pytest.mark.pure

U64 = 2**64 - 1
ORDER = sort_columns(APPEND, facts=False)


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & U64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & U64
    return x ^ (x >> 31)


def code(cell: Scalar, of: pa.DataType) -> int:
    if cell is None:
        return 0x9FB21C651E98DF25
    if pa.types.is_decimal(of):
        return code_of_bytes(int(cell).to_bytes(16, "little", signed=True))
    if isinstance(cell, float):
        bits: int = struct.unpack("<Q", struct.pack("<d", cell + 0.0))[0]
        return 0x7FF8000000000000 if cell != cell else bits
    if isinstance(cell, str):
        return code_of_bytes(bytes.fromhex(cell) if pa.types.is_binary(of) else cell.encode())
    return int(cell) & U64


def code_of_bytes(data: bytes) -> int:
    padded = data + b"\0" * (-len(data) % 8)
    words = [int.from_bytes(padded[at : at + 8], "little") for at in range(0, len(padded), 8)]
    return mix(len(data) ^ sum(mix(w ^ mix(n)) for n, w in enumerate(words, 1)) & U64)


def expected(table: pa.RecordBatch, forward: int = 0) -> int:
    total = 0
    for row in rows(table):
        h = 0x9E3779B97F4A7C15
        for field, cell in zip(table.schema, row, strict=True):
            if field.name in ("_time", "_event_time"):
                assert isinstance(cell, int)
                h = mix(h ^ code(max(cell, forward), field.type))
            elif field.name != "_diff":
                h = mix(h ^ code(cell, field.type))
        diff = row[table.schema.names.index("_diff")] if "_diff" in table.schema.names else 1
        assert isinstance(diff, int)
        total += h * diff
    return total & U64


@laws
@given(updates(APPEND), st.integers(0, 14))
def test_updates_hash_as_written_down(some: list[Update], forward: int) -> None:
    table = of_updates(APPEND, some)
    assert digest(table) == expected(table)
    assert (
        digest(table, forward=forward)
        == expected(table, forward)
        == digest(forwarded(table, CompactionFunction(forward)))
    )


def test_long_strings_beside_short_ones_hash_as_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Around the length from which strings are hashed alone, and around several times it; rows cut by bytes."""
    monkeypatch.setattr("tidemark.arrow.rows.digest.LONG", 16)
    monkeypatch.setattr("tidemark.arrow.rows.digest.BLOCK_BYTES", 400)
    lengths = (0, 15, 16, 17, 3, 24, 127, 128, 129, 136, 1, 1000, 8 * 16 * 3)
    table = of_updates(SMALL, [Update((n,), ("aé🌊xyz"[n % 6] * length,), n, n, 1) for n, length in enumerate(lengths)])
    assert digest(table) == expected(table)


@laws
@given(updates(APPEND), st.integers(0, 14))
def test_consolidation_leaves_the_digest_as_it_was(some: list[Update], since: int) -> None:
    table = sort(forwarded(of_updates(APPEND, some), CompactionFunction(since)), ORDER)
    assert digest(consolidated(table, ORDER)) == digest(table)


def test_facts_count_once_each_and_tombstones_differ_from_nulls() -> None:
    facts = [Fact((1,), ("a", 0.5), 3, 2, (None, "f", 0)), Fact((1,), None, 3, 2, (None, "f", 1))]
    table = of_facts(KEYED, facts)
    assert digest(table) == expected(table)
    nulls = of_facts(KEYED, [Fact((1,), (None, None), 3, 2, (None, "f", 1))])
    assert digest(nulls) != digest(of_facts(KEYED, facts[1:]))


@laws
@given(st.lists(st.one_of(st.none(), st.text(max_size=50)), max_size=20))
def test_any_strings(words: list[str | None]) -> None:
    table = pa.record_batch({"s": pa.array(words, pa.string())})
    assert digest(table) == expected(table)


def test_floats_hash_by_value_not_by_bits() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    odd = pa.record_batch({"x": [-0.0, other_nan]})
    usual = pa.record_batch({"x": [0.0, float("nan")]})
    assert row_hashes(odd).tolist() == row_hashes(usual).tolist()


def test_the_format_does_not_drift() -> None:
    """A value of the first release: if it changes, no older part verifies any more."""
    first = collection(Envelope.APPEND, value=VALUE[:6])
    table = batch(
        of_updates(first, []).schema,
        [(1, "ké", True, -1, 0.1, "eight by and more", 20000, 1_700_000_000_000_001, 5, 6, -2)],
    )
    assert f"{digest(table):016x}" == f"{expected(table):016x}" == "04849cdc1e046f02"


def test_the_types_of_format_2_do_not_drift() -> None:
    table = batch(
        of_updates(collection(Envelope.APPEND, value=VALUE[6:]), []).schema,
        [(1, "ké", "ff00", '{"a":1}', -1250, 5, 6, -2), (1, "ké", "", "[]", 10**12 - 1, 5, 6, 1)],
    )
    assert f"{digest(table):016x}" == f"{expected(table):016x}" == "c88e75d3188c642c"


def test_a_decimal_of_more_digits_before_the_point_hashes_alike() -> None:
    narrow = pa.record_batch({"d": pa.array([Decimal("-12.50"), None, Decimal("0.01")], pa.decimal128(12, 2))})
    wider = pa.record_batch({"d": narrow.column("d").cast(pa.decimal128(38, 2))})
    assert digest(narrow) == digest(wider) == expected(wider)

"""Lateness, row by row against a plain oracle, for every envelope, policy and kind of collection."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.pure.ingest.landed import collection
from tidemark.arrow.kernels.lateness import LatenessBounds, judge
from tidemark.arrow.rows.schema import unsealed_schema
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late

pytestmark = pytest.mark.pure

ARRIVAL = 59
TIMES = st.integers(0, 60)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.integers(0, 3),
            "v": st.sampled_from([None, "x", "gone"]),
            "t": TIMES,
            "e": TIMES,
            "diff": st.integers(-2, 2),
        }
    ),
    max_size=8,
)


def oracle(row: dict[str, Any], c: Collection, complete: int, seal: int, since: int) -> tuple[str, int, int, int]:
    """(fate, time, event_time, lateness) of one row."""
    time = row["t"] if c.landed.time else ARRIVAL
    coordinate = row["e"] if c.landed.event_time else time
    if coordinate >= complete:
        learned = max(time, seal)
        return "on time", learned, row["e"] if c.landed.event_time else learned, 0
    lateness, fate = complete - coordinate, "applied"
    if c.landed.late.policy == "next_window":
        return "moved to the seal", seal, seal, lateness
    if c.landed.late.policy == "discard":
        fate = "below the seal"
    elif c.landed.late.max_lateness is not None and lateness > c.landed.late.max_lateness:
        fate = "beyond max_lateness"
    elif coordinate < since:
        fate = "below since"
    return fate, seal, row["e"] if c.landed.event_time else seal, lateness


COLLECTIONS = st.builds(
    collection,
    st.just(Column("v", ColumnType.STRING)),
    envelope=st.sampled_from([Envelope.APPEND, Envelope.UPDATES]),
    time=st.sampled_from(["t", None]),
    event_time=st.sampled_from(["e", None]),
    late=st.sampled_from([Late(), Late("next_window"), Late("reemit"), Late("reemit", 10), Late("reemit", 0)]),
) | st.builds(
    collection,
    st.just(Column("v", ColumnType.STRING)),
    envelope=st.just(Envelope.UPSERT),
    time=st.sampled_from(["t", None]),
    event_time=st.sampled_from(["e", None]),
    order_by=st.sampled_from(["t", None]),
    delete_when=st.sampled_from(["v = 'gone'", "NOT v = 'x'", None]),
    late=st.sampled_from([Late(), Late("next_window"), Late("reemit"), Late("reemit", 10)]),
    inputs=st.just((Column("t", ColumnType.INT),)),
)


@settings(max_examples=300, deadline=None)
@given(c=COLLECTIONS, rows=ROWS, complete=TIMES, ticks=st.integers(0, 9), since=TIMES)
def test_rows_are_judged_as_the_oracle_judges(
    c: Collection, rows: list[dict[str, Any]], complete: int, ticks: int, since: int
) -> None:
    """Late by what is complete, learned at the seal, which ticks have taken beyond that; on-time rows, too."""
    seal = complete + ticks
    numbered = [row | {"_row": at} for at, row in enumerate(rows)]
    schema = pa.schema([("k", pa.int64()), ("v", pa.string()), *((n, pa.int64()) for n in ("t", "e", "diff", "_row"))])
    judged = judge(
        pa.RecordBatch.from_pylist(numbered, schema), c, LatenessBounds(complete, seal, since, ARRIVAL), path="p"
    )
    verdicts = [oracle(row, c, complete, seal, since) for row in rows]
    for fate in {verdict[0] for verdict in verdicts}:
        event(fate)

    kept = [
        (row, verdict)
        for row, verdict in zip(numbered, verdicts, strict=True)
        if verdict[0] in ("on time", "applied", "moved to the seal")
    ]
    assert judged.applied.to_pylist() == [expected(row, c, time, event_time) for row, (_, time, event_time, _) in kept]
    assert judged.applied.schema == unsealed_schema(c)

    late = [(row, verdict) for row, verdict in zip(numbered, verdicts, strict=True) if verdict[0] != "on time"]
    assert judged.late.to_pylist() == [
        {name: row[name] for name in schema.names if name != "_row"}
        | {"_reason": "below the seal" if fate == "applied" else fate}
        | {"_applied": fate in ("applied", "moved to the seal"), "_lateness": lateness}
        | {"_original_event_time": complete - lateness, "_complete_below": complete}
        | {"_time": time, "_event_time": event_time, "_file": "p"}
        | {"_row": row["_row"]}
        for row, (fate, time, event_time, lateness) in late
    ]
    assert judged.late_moved == sum(fate == "moved to the seal" for fate, *_ in verdicts)
    assert judged.late_applied == judged.late_moved + sum(fate == "applied" for fate, *_ in verdicts)
    assert judged.late_discarded == len(late) - judged.late_applied
    coordinates = [
        row["e"] if c.landed.event_time else row["t"] if c.landed.time else ARRIVAL
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict[0] == "on time"
    ]
    assert judged.first_on_time == min(coordinates, default=None)


def expected(row: dict[str, Any], c: Collection, time: int, event_time: int) -> dict[str, Any]:
    """A row of the unsealed batch."""
    times = {"_time": time, "_event_time": event_time}
    if not c.kind.facts:
        diff = row["diff"] if c.landed.source.envelope is Envelope.UPDATES else 1
        return {"k": row["k"], "v": row["v"]} | times | {"_diff": diff}
    deleted = {"v = 'gone'": row["v"] == "gone", "NOT v = 'x'": row["v"] == "gone", None: False}[
        c.landed.source.delete_when
    ]
    fact = {"k": row["k"], "v": None if deleted else row["v"], "_deleted": deleted}
    return fact | times | {"_order": row["t"] if c.landed.source.order_by else None, "_file": "p", "_row": row["_row"]}


def test_lateness_is_exact_at_the_ends_of_the_range() -> None:
    c = collection(late=Late("reemit", 2**63 - 1))
    batch = pa.record_batch({"k": [1, 1], "t": [0, 2**63 - 1], "_row": [0, 1]})
    judged = judge(batch, c, LatenessBounds(2**63 - 1, 2**63 - 1, 0, 0), path="p")
    assert judged.late.column("_lateness").to_pylist() == [2**63 - 1]
    assert judged.applied.column("_time").to_pylist() == [2**63 - 1, 2**63 - 1]

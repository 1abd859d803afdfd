"""What must hold after every step of a walk: each answer is the oracle's, and the trace is as it is described."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
from hypothesis.stateful import invariant

from simulation.depths import reached
from simulation.oracle import Oracle
from simulation.telling import Telling
from tests.support.reading import as_of, changes
from tidemark.storage.sidecars import parts_table


def compare(found: Counter[Any], expected: Counter[Any], what: str) -> None:
    wrong = {at: (found[at], expected[at]) for at in {*found, *expected} if found[at] != expected[at]}
    assert not wrong, f"{what}: (found, expected) {wrong}"


class Answering(Telling):
    """The invariants of a machine whose oracle learns what is committed."""

    def __init__(self) -> None:
        super().__init__()
        self.checked: set[str] = set()

    @invariant()
    def answers_are_the_oracle_s(self):
        if not hasattr(self, "world"):
            return
        head = self.world.head
        state, oracle = head.state, self.oracle
        frontiers = (state.complete_below, state.seal, state.since)
        assert frontiers == (oracle.complete, oracle.seal, oracle.since)
        if state.seal == 0 or getattr(self, "answered", 0) == head.version:
            return
        self.answered = head.version
        self.what_is_not_kept_is_refused()
        kept = oracle.kept()
        if not kept:
            return
        below = [time for time in kept if time < state.since]
        if below:
            reached("reads below since")
        first = -1 if state.since == 0 else kept[0]
        for after in {first, below[-1] if below else first}:
            updates = changes(self.world.truth, state, after=after, upto=kept[-1]).to_pylist()
            found = Counter({(r["k"], (r["v"],), r["_commit_version"], r["_event_time"]): r["diff"] for r in updates})
            compare(found, oracle.changes(after, kept[-1]), f"changes after {after}")
        drained = max(time for time in kept if time <= max(kept[0], state.trace_upper))
        times = {state.since if state.since < state.seal else kept[0], kept[-1], drained, *below[-1:]}
        happened = {kept[0], oracle.forward(max(0, state.trace_upper - 2)), 10**9}
        for time in times:
            for event_time in happened:
                rows = as_of(self.world.truth, state, time=time, event_time=event_time).to_pylist()
                contents = Counter({(r["k"], (r["v"],)): r["_multiplicity"] for r in rows})
                compare(contents, oracle.as_of(time, event_time), f"as_of({time}, {event_time})")

    @invariant()
    def the_trace_keeps_its_descriptions(self):
        if not hasattr(self, "world"):
            return
        state = self.world.state
        for batch in state.trace:
            if batch.id in self.checked or not batch.rows:
                continue
            self.checked.add(batch.id)
            parts = parts_table.load(self.world.truth, batch.parts)
            rows_of = {
                part.file.key: pq.read_table(self.world.truth.open_input(part.file.key)).to_pylist() for part in parts
            }
            found = [row for rows in rows_of.values() for row in rows]
            said = batch.description
            forward = Oracle.forwarding(said.since, tuple((rung.lower, rung.interval) for rung in said.rungs))
            assert len(found) == batch.rows
            assert all(row["_diff"] for row in found)
            assert batch.retractions == sum(row["_diff"] < 0 for row in found)
            assert all(said.lower <= row["_time"] <= max(said.upper - 1, forward(said.upper - 1)) for row in found)
            for row in found:
                assert (row["_time"], row["_event_time"]) == (forward(row["_time"]), forward(row["_event_time"]))
            in_order = [row for part in parts if not part.cancels for row in rows_of[part.file.key]]
            cancelling = [rows_of[part.file.key] for part in parts if part.cancels]
            for rows in [in_order, *cancelling]:
                assert all(a < b for a, b in pairwise(map(_place, rows)))
            assert len(set(map(_place, found))) == len(found)
            for rows in cancelling:
                sums: Counter[Any] = Counter()
                for row in rows:
                    sums[_place(row)[:2]] += row["_diff"]
                assert not any(sums.values())


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["k"], (row["v"] is not None, row["v"] or ""), row["_time"], row["_event_time"]

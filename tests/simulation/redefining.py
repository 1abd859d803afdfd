"""Rules of the state machine about declarations that change while rows are at rest and work goes on."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import rule

from simulation.answering import Answering
from simulation.depths import reached
from support.relanded import relanded
from tidemark.model.change import Redefined
from tidemark.model.collection import Column, ColumnType, Late
from tidemark.model.evolution import evolved

lateness = st.sampled_from(
    [Late("discard"), Late("next_window"), Late("reemit"), Late("reemit", 3), Late("reemit", 14)]
)


class Redefining(Answering):
    """What an owner changes in a collection file, but for its retention (keeping.py)."""

    @rule(late=lateness)
    def redefine_lateness(self, late):
        head = self.world.head
        if head.state.forgotten_below and late.reach > head.state.collection.landed.late.reach:
            reached("more lateness than is remembered")
        self.world.log().commit(head, Redefined(relanded(head.state.collection, late=late)))
        self.observe()

    @rule()
    def redefine_columns(self):
        """A column comes and goes: nobody sees it, and rows at rest have one more from then on."""
        for coming in (True, False):
            head = self.world.head
            current = head.state.collection
            kept = tuple(column for column in current.value if column.name == "v")
            value = (*kept, Column("w", ColumnType.BOOL)) if coming else kept
            self.world.log().commit(head, Redefined(evolved(current, replace(current, value=value))))
        if self.world.state.batches:
            reached("columns changed beside rows at rest")
        self.observe()

    @rule()
    def redefine_quality(self):
        head = self.world.head
        quality = json.dumps({"row_count": len(head.state.collection.quality), "version": head.version})
        declared = replace(head.state.collection, quality=(quality,))
        if any(not b.first_time < head.state.trace_upper and head.state.is_certified(b) for b in head.state.pending):
            reached("certificates lapse")
        self.world.log().commit(head, Redefined(declared))
        self.observe()

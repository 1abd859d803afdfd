"""Leveled compaction: which neighbouring trace batches to replace by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.errors import Unvouched
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, TraceBatch
from tidemark.model.collection import Gate


@dataclass(frozen=True)
class CompactionRequest:
    """Replace `inputs`, neighbours and oldest first, by one batch of `description`."""

    inputs: tuple[TraceBatch, ...]
    description: Description

    @property
    def with_data(self) -> tuple[TraceBatch, ...]:
        return tuple(batch for batch in self.inputs if batch.rows)

    @property
    def moves_no_data(self) -> bool:
        """Whether the output can take over the one input's parts as they are: metadata only."""
        held = self.with_data
        return not held or (len(held) == 1 and held[0].description.since == self.description.since)

    def level(self, rows: int) -> int:
        """The inputs' highest plus one if the output holds more rows than each input, else their highest: data that
        was retracted does not climb."""
        highest = max(batch.level for batch in self.inputs)
        return highest + 1 if rows > max(batch.rows for batch in self.inputs) else highest


def plan_compaction(state: Arrangement) -> CompactionRequest | None:
    """The cascade due now, as one merge; None if no two neighbours share a level.

    From the oldest, two neighbours of one level merge; what they would become may meet its neighbour's level in turn,
    and so on until no two neighbours share a level. Of the runs of batches that would end up as one, the oldest is
    merged now, in one go, which halves the bytes a pairwise cascade writes. Batches ahead of `since` keep their times;
    a collection with `compact_ahead` off waits until `since` has passed them. The trace of a keyed collection is
    forwarded to its horizon at most: facts to come are resolved against what it held there.

    Raises Unvouched if an input is not vouched for under the current trace suite.
    """
    groups = _cascaded([(batch,) for batch in state.trace], state)
    due = next((group for group in groups if len(group) > 1), None)
    if due is None:
        return None
    if unvouched := [batch.id for batch in due if not state.is_vouched(batch)]:
        raise Unvouched(f"trace batch {unvouched[0]} is not vouched for; run the trace gate", Gate.TRACE)
    since = min(state.since, state.horizon) if state.collection.keyed else state.since
    description = Description(due[0].description.lower, due[-1].description.upper, since)
    return CompactionRequest(due, description)


def _cascaded(groups: list[tuple[TraceBatch, ...]], state: Arrangement) -> list[tuple[TraceBatch, ...]]:
    """Join the oldest two neighbouring groups of one expected level until there are none."""
    while (at := _oldest_pair(groups, state)) is not None:
        groups = [*groups[: at - 1], groups[at - 1] + groups[at], *groups[at + 1 :]]
    return groups


def _oldest_pair(groups: Sequence[tuple[TraceBatch, ...]], state: Arrangement) -> int | None:
    for at in range(1, len(groups)):
        behind = state.collection.compact_ahead or groups[at][-1].description.upper <= state.since
        if behind and _expected_level(groups[at - 1]) == _expected_level(groups[at]):
            return at
    return None


def _expected_level(group: Sequence[TraceBatch]) -> int:
    """The level a merge of the group reaches if nothing consolidates away."""
    highest = max(batch.level for batch in group)
    rows = sum(batch.rows for batch in group)
    return highest + 1 if len(group) > 1 and rows > max(batch.rows for batch in group) else highest

"""Which batches of remembered facts to merge, and how.

Facts that were drained are remembered down to the horizon (docs/decisions/0008). A batch more each drain would make a
state as long as what it remembers, and a late fact would open every one of them. So they are merged as the trace is,
by levels that count like digits (compact.py): an unsealed batch of which all was drained is on level 0, and FAN_IN
batches of a level become one of the next, all in one pass where several levels are full.

Facts are a set to those that come later: when one was learned is no longer of use, nor is what was said and retracted,
nor what happened below the horizon. All that goes with a merge, so each fact is written at most as often as there are
levels, and of n batches FAN_IN - 1 a level are left: 90 days of hours are 24 batches at most.

An example with FAN_IN 2, after each drain and merge, from old to new, in batches that were drained:

    1  |  2  |  2 1  |  4  |  4 1  |  4 2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part, UnsealedBatch
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval
from tidemark.plan.ranges import split_keys, within
from tidemark.plan.tasks import RememberTask, WriteAnswer

FAN_IN = 8
"""So many batches of one level are merged into one of the next."""


@dataclass(frozen=True)
class RememberRequest:
    """Replace `inputs` by one batch on `level` of what happened at `horizon` or later; what happened below `forgets` is
    forgotten then."""

    inputs: tuple[UnsealedBatch, ...]
    level: int
    horizon: int
    forgets: int

    @property
    def interval(self) -> Interval:
        """The hull of those that the inputs came with."""
        spans = [batch.interval for batch in self.inputs]
        return Interval(min(span.lower for span in spans), max(span.upper for span in spans))


def plan_remember(state: Arrangement) -> RememberRequest | None:
    """The merge due now; None if there is none."""
    if not state.collection.kind.facts or len(state.drained) < FAN_IN:
        return None
    inputs = state.drained
    for level in count(1):
        full = tuple(batch for batch in state.remembered if batch.level == level)
        if len(full) < FAN_IN - 1:
            return RememberRequest(inputs, level, state.remembered_from, state.forgets_below)
        inputs = (*full, *inputs)
    raise AssertionError("unreachable")


def remember_tasks(
    collection: Collection, request: RememberRequest, parts: Sequence[Part], *, target_rows: int, prefix: str
) -> list[RememberTask]:
    """The merge of the inputs' `parts`, by key range, in order."""
    return [
        RememberTask(collection, within(parts, keys), keys, request.horizon, prefix)
        for keys in split_keys(parts, target_rows=target_rows)
    ]


def check(request: RememberRequest, parts: Sequence[Part], answers: Sequence[WriteAnswer], schema: int) -> None:
    """Raise Corruption unless the inputs were read whole, as recorded where they have today's columns (`schema`), and
    what was written is what stays of them."""
    rows, recorded = sum(answer.rows_read for answer in answers), sum(batch.rows for batch in request.inputs)
    if rows != recorded:
        raise Corruption(f"the merge of remembered facts read {rows} rows, its inputs hold {recorded}; refused")
    read = sum(answer.digest_read for answer in answers) % DIGEST_MODULUS
    expected = sum(answer.digest_checked for answer in answers) % DIGEST_MODULUS
    recorded_sum = sum(part.digest for part in parts) % DIGEST_MODULUS
    if all(part.schema == schema for part in parts) and read != recorded_sum:
        raise Corruption(f"the inputs' recorded sums give {recorded_sum:016x}, the merge read {read:016x}; refused")
    written = [part for answer in answers for part in answer.parts]
    left = sum(-part.digest if part.retractions else part.digest for part in written) % DIGEST_MODULUS
    if left != expected:
        raise Corruption(f"the merge of remembered facts wrote a sum of {left:016x}, {expected:016x} stays; refused")

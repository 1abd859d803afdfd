"""Which batches of remembered facts to merge, and how.

Facts that were drained are remembered down to the horizon (docs/decisions/0008). A batch more each drain would make a
state as long as what it remembers, and a late fact would open every one of them. So they are merged, by their rows:

    The smallest batches become one, as many as together have FAN_IN times the rows of the largest among them. There may
    be FAN_IN - 1 batches a *level*, which says how often the facts of a batch were merged. Where there are more, half
    of FAN_IN times the rows are enough, and so on down to twice the rows.

So no batch is written again for fewer rows than it has: a base of a million stays as it is until as many came behind
it. Batches of one size are merged when there are FAN_IN of them. A fact is written again only into a batch that is
FAN_IN times as large as the one before it, or at least twice. Of n equal batches FAN_IN - 1 a level are left, and there
are log n levels: 90 days of hours are 24 batches at most. More than FAN_IN - 1 a level are left only where each has
more rows than all smaller ones together: no more than the binary logarithm of all rows.

Facts are a set to those that come later, so any batches can be merged, whenever they were drained: when a fact was
learned is no longer of use, nor is what was said and retracted, nor what happened below the horizon. All that goes with
a merge.

An example with FAN_IN 2, after each drain and merge, from old to new, in rows:

    1  |  2  |  2 1  |  4  |  4 1  |  4 2

With FAN_IN 8 and a base: 1,000,000 and 7 times 1,000 are 8 batches, where 7 may be. They become 1,000,000 and 7,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part, UnsealedBatch
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval
from tidemark.plan.ranges import split_keys, within
from tidemark.plan.tasks import RememberTask, WriteAnswer

FAN_IN = 8
"""So many batches of one size are merged into one."""
LEAST_GROWTH = 2
"""What is merged has so many times the rows of each input at least, before anything vanishes."""


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
    batches = (*state.remembered, *state.drained)
    if not state.collection.kind.facts or not batches:
        return None
    top = max(batch.level for batch in batches)
    ordered, growth = sorted(batches, key=lambda batch: batch.rows), FAN_IN
    while not (smallest := _growing(ordered, growth)):
        if len(batches) <= (FAN_IN - 1) * (1 + top) or growth <= LEAST_GROWTH:
            return None
        growth = max(LEAST_GROWTH, growth // 2)
    inputs = tuple(batch for batch in batches if batch in smallest)
    level = 1 + max(batch.level for batch in inputs)
    return RememberRequest(inputs, level, state.remembered_from, state.forgets_below)


def _growing(ordered: Sequence[UnsealedBatch], growth: int) -> Sequence[UnsealedBatch]:
    """The smallest batches, as many as can be, that together have `growth` times the rows of each of them."""
    totals = accumulate(batch.rows for batch in ordered)
    ends = [end for end, total in enumerate(totals, 1) if total >= growth * ordered[end - 1].rows]
    return ordered[: max(ends, default=0)]


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

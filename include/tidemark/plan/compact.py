"""Leveled compaction: which neighbouring trace batches to replace by one.

Two costs are set against each other: a read opens every batch that is alive, and a merge writes its rows once more.
With at most k batches alive and each row written at most w times one can take in C(k + w, k) batches and not one more.
The *level* of a batch counts the merges its rows went through; what a drain writes is on level 0. Read from old to new
the levels never rise. There are as many such sequences of k levels as batches can be taken in, so compaction counts
through them, as through the digits of a number:

    While there are more batches than the budget, the youngest batch on a lower level than its older neighbour (the
    oldest batch counts as one) takes in all that are younger, and the result is one level higher. Batches with more
    rows than all younger ones together are left alone: to rewrite them would cost more than it brings.

An example: drains of one row each, with a budget of three batches (and never less than 2 x highest level + 2). A batch
is shown as rows/level, the trace from old to new:

    drains  trace after compaction     rows rewritten
         3  1/0 1/0 1/0                             0
         4  4/1                                     4
         7  4/1 1/0 1/0 1/0                         0
         8  4/1 4/1                                 4
        11  4/1 4/1 3/1                             3
        13  4/1 4/1 3/1 2/1                         2
        14  14/2                                   14

With the fourth drain there are four batches: the oldest takes in the others. On level 1 the budget is four. With the
eighth drain there are five: the first of the small ones takes in the three behind it. With the fourteenth all five are
taken in by the oldest, as all but the last are on one level. By then 14 rows were written 14 + 27 times.

The trace of a keyed collection is looked into by every drain, wherever a key may be, and grows with all history that is
kept. So the oldest batches are also merged when a third of their rows would cancel, a value and its retraction:
those are written into parts of their own (`cancels`), which drains and reads of the present leave out, and later merges
of that kind leave as they are. The youngest, above the horizon, are not touched.

Costs: batches alive stay within the budget, O(log n) after n drains; each row is written at most 2 + highest level
times, O(log n). For equal batches that is on average 1.13 times the least possible for as many batches alive; just
after a level was completed up to one writing of every row more, since how many batches will come is not known
(docs/decisions/0012). A merge is one pass however many batches it takes in, in bounded memory (arrow/kernels/merge.py).
What is promised in figures: plan/bounds.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile

from tidemark.errors import Corruption, Uncertified
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Description, Part, TraceBatch
from tidemark.model.collection import Collection, Gate
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import MAX_TIME
from tidemark.plan.answers import check_sums
from tidemark.plan.ranges import split_keys, within
from tidemark.plan.tasks import MergeTask, WriteAnswer

SETTLED_ROWS = 2**18
"""Sixteen row groups: a lookup in fewer rows has little to gain."""
SETTLED_SHARE = 3
"""What cancels is separated when it is one row in so many."""


@dataclass(frozen=True)
class CompactionRequest:
    """Replace `inputs`, neighbours and oldest first, by one batch of `description`."""

    inputs: tuple[TraceBatch, ...]
    description: Description
    separate_upto: int = -1
    """What happened up to here and adds up to nothing is separated (-1: nothing is)."""

    @property
    def with_data(self) -> tuple[TraceBatch, ...]:
        return tuple(batch for batch in self.inputs if batch.rows)

    @property
    def moves_no_data(self) -> bool:
        """Whether the output can take over the one input's parts as they are: metadata only."""
        batches = self.with_data
        return not batches or (len(batches) == 1 and batches[0].description.function == self.description.function)

    def level(self, rows: int) -> int:
        """The inputs' highest plus one if the output holds more rows than each input, else their highest: data that was
        retracted does not climb, nor does what is merged to separate that."""
        highest = max(batch.level for batch in self.inputs)
        if self.separate_upto >= 0:
            return highest
        return highest + 1 if rows > max(batch.rows for batch in self.inputs) else highest


def merge_tasks(
    collection: Collection, request: CompactionRequest, parts: Sequence[Part], *, target_rows: int, prefix: str
) -> list[MergeTask]:
    """The merge of the inputs' `parts`, by key range, in order."""
    function = request.description.function
    return [
        MergeTask(collection, within(parts, keys), keys, 0, MAX_TIME, function, prefix, request.separate_upto)
        for keys in split_keys(parts, target_rows=target_rows)
    ]


def check(
    request: CompactionRequest, answers: Sequence[WriteAnswer], *, alike: bool, kept: Sequence[Part] = ()
) -> None:
    """The inputs were read whole, but for the parts that are `kept` as they are, and their recorded sums, where
    forwarding leaves those alone, are the output's: Corruption otherwise.

    `alike` says whether the inputs have the output's columns: hashes are over columns, so else sums cannot be compared.
    """
    total = check_sums(answers)
    read, expected = sum(answer.rows_read for answer in answers), sum(batch.rows for batch in request.inputs)
    expected -= sum(part.rows for part in kept)
    if read != expected:
        raise Corruption(f"the compaction read {read} rows, its inputs hold {expected}; refused")
    if alike and all(batch.description.function == request.description.function for batch in request.with_data):
        left = sum(batch.digest for batch in request.inputs) - sum(part.digest for part in kept)
        recorded = left % DIGEST_MODULUS
        if total != recorded:
            raise Corruption(f"the inputs' recorded sums give {recorded:016x}, the merge read {total:016x}; refused")


def budget(live_batches: int, level: int) -> int:
    """How many batches may be alive after compaction where the highest level is `level`: O(log n) after n appends."""
    return max(live_batches, 2 * level + 2)


def plan_compaction(state: Arrangement) -> CompactionRequest | None:
    """The merge due now; None if there is none. Each is one k-way merge, however many batches it takes in.

    First what pays for itself: history behind `since` of which half would vanish. Then, where there are too many
    batches, what costs nothing: neighbours of which at most one has data; else what the levels ask for. A collection
    with `compact_ahead` off merges only behind `since`, neighbours of one level, oldest first, as Materialize's first
    `persist` did. Where drained facts are remembered, times are forwarded to the horizon at most, because facts to come
    are resolved against what the trace contained there.

    Raises Uncertified if an input is not certified under the current trace suite.
    """
    inputs = due(state)
    if not inputs:
        return None
    if uncertified := [batch.id for batch in inputs if not state.is_certified(batch)]:
        raise Uncertified(f"trace batch {uncertified[0]} is not certified; run the trace gate", Gate.TRACE)
    functions = [batch.description.function for batch in inputs if batch.rows]
    # `allowed` may reach less far than before, where retention keeps coarser intervals by now and the last whole one
    # below the horizon ends earlier. What inputs were forwarded by already is kept: it cannot be undone.
    function = (
        functions[0]
        if len(inputs) > 1 and len(functions) == 1
        else reduce(CompactionFunction.then, functions, allowed(state))
    )
    lower, upper = inputs[0].description.lower, inputs[-1].description.upper
    separate_upto = state.horizon if _separates(state, inputs) else -1
    return CompactionRequest(inputs, Description(lower, upper, function.since, function.rungs), separate_upto)


def due(state: Arrangement) -> tuple[TraceBatch, ...]:
    """The batches that the next merge replaces, oldest first, certified or not; none if nothing is due."""
    function = allowed(state)
    if shrinking := _shrinking(state, function):
        return shrinking
    return (_settling(state) or _over_budget(state)) if state.collection.compact_ahead else _cascade(state)


def allowed(state: Arrangement) -> CompactionFunction:
    """The function by which times in the trace may be forwarded now."""
    return state.function.capped(max(0, state.remembered_from))


def _shrinking(state: Arrangement, function: CompactionFunction) -> tuple[TraceBatch, ...]:
    """The batches whose times do not differ any more, oldest first, if half of their rows would vanish in a merge.

    A retraction there cancels the row that it retracts, which is in one of these batches too: two rows less. Not
    counted are those of an oldest batch that has been forwarded that far already: what could cancel in it, did.
    """
    if function.changes_nothing:
        return ()
    behind = [batch for batch in state.trace if batch.description.upper <= function.floor]
    rows = sum(batch.rows for batch in behind)
    pending = behind[1:] if behind and behind[0].description.is_one_instant else behind
    return tuple(behind) if pending and 4 * sum(batch.retractions for batch in pending) >= max(1, rows) else ()


def _settling(state: Arrangement) -> tuple[TraceBatch, ...]:
    """The oldest batches, of a keyed collection, if a merge would separate a third of the rows in which drains look
    keys up: those behind the horizon, so that the youngest stay as they are.

    A retraction cancels a row of its own batch or of an older one, so those of the oldest batch are separated already,
    or cannot be. Where less than SETTLED_ROWS are looked into it would bring little.
    """
    if not state.collection.kind.facts or not allowed(state).changes_nothing:
        return ()
    horizon = state.horizon
    behind = list(takewhile(lambda batch: batch.description.upper <= horizon, state.trace))
    if len(behind) < 2:
        return ()
    looked_into = sum(batch.rows for batch in behind) - 2 * behind[0].retractions
    pending = 2 * sum(batch.retractions for batch in behind[1:])
    return tuple(behind) if looked_into >= SETTLED_ROWS and SETTLED_SHARE * pending >= looked_into else ()


def _separates(state: Arrangement, inputs: Sequence[TraceBatch]) -> bool:
    """Whether a merge separates what cancels: of a keyed collection, with its oldest batch, where that is worth parts
    of its own."""
    if not state.collection.kind.facts or inputs[0] != state.trace[0]:
        return False
    rows, retractions = sum(batch.rows for batch in inputs), sum(batch.retractions for batch in inputs)
    return rows >= SETTLED_ROWS and 2 * SETTLED_SHARE * retractions >= rows


def _over_budget(state: Arrangement) -> tuple[TraceBatch, ...]:
    trace = state.trace
    if len(trace) <= budget(state.collection.live_batches, max((batch.level for batch in trace), default=0)):
        return ()
    return _fusing(trace) or trace[_taking_in(trace) :]


def _fusing(trace: Sequence[TraceBatch]) -> tuple[TraceBatch, ...]:
    """The oldest neighbours of which at most one has data: merging them writes nothing."""
    for at in range(1, len(trace)):
        if not (trace[at - 1].rows and trace[at].rows):
            return (trace[at - 1], trace[at])
    return ()


def _taking_in(trace: Sequence[TraceBatch]) -> int:
    """The place of the batch that takes in all younger ones.

    A batch larger than all younger ones together stays separate: to rewrite it would cost more than it brings. It does
    not bound the levels behind it, either.
    """
    younger = 0
    large = [False] * len(trace)
    for at in reversed(range(len(trace))):
        large[at] = trace[at].rows > younger
        younger += trace[at].rows
    for at in reversed(range(len(trace) - 1)):
        rises = at == 0 or large[at - 1] or trace[at].level < trace[at - 1].level
        if rises and not large[at]:
            return _with_small_ones(trace, at)
    return _with_small_ones(trace, len(trace) - 2)


def _with_small_ones(trace: Sequence[TraceBatch], at: int) -> int:
    """Where a merge of the batches from `at` on should begin: older neighbours come along as long as all of them
    together have no more than a quarter of the rows. Left out, each of them would have the merged rows written again
    soon."""
    spare = sum(batch.rows for batch in trace[at:]) // 4
    while at > 0 and trace[at - 1].rows <= spare:
        at -= 1
        spare -= trace[at].rows
    return at


def next_pair(groups: Sequence[Sequence[TraceBatch]], since: int) -> int | None:
    """The oldest place whose group is on the level of its older neighbour and behind `since`, or None."""
    for at in range(1, len(groups)):
        behind = groups[at][-1].description.upper <= since
        if behind and _expected_level(groups[at - 1]) == _expected_level(groups[at]):
            return at
    return None


def _cascade(state: Arrangement) -> tuple[TraceBatch, ...]:
    """The oldest group of batches that merging pair by pair would end up as one."""
    groups: list[tuple[TraceBatch, ...]] = [(batch,) for batch in state.trace]
    while (at := next_pair(groups, state.since)) is not None:
        groups = [*groups[: at - 1], groups[at - 1] + groups[at], *groups[at + 1 :]]
    return next((group for group in groups if len(group) > 1), ())


def _expected_level(group: Sequence[TraceBatch]) -> int:
    """The level a merge of the group reaches if nothing consolidates away."""
    highest = max(batch.level for batch in group)
    rows = sum(batch.rows for batch in group)
    return highest + 1 if len(group) > 1 and rows > max(batch.rows for batch in group) else highest

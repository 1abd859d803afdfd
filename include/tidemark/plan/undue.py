"""Rows stored ahead: which of them to keep together, so that a drain opens what is due and nothing else.

An update whose time is still to come waits in a batch on the shelf `ahead`. How far ahead counts in the time buckets of
a correction buffer (model/correction_buffer/buckets.py): narrow where they are due soon, each at most four times as
wide as the one before it. A drain at a frontier opens the batches that begin before it. So that these are few, and
hold little else:

    stage   what drains left, as it came, by reference: whatever buckets it is in. A batch also gets there once its
            bucket was halved, because the frontier has come near. As long as the stage is small, in rows, it stays:
            opening it costs a drain what any read decodes at least. Of too many small batches one is made.
    route   a stage that is not small is sorted by buckets. Whole parts of one bucket are taken as they are; the others
            are rewritten, a part for each bucket.
    chain   in each bucket what comes is merged with older batches by the chain rule (chain_rule.py): there are O(log n)
            batches, each row is rewritten O(log n) times.

Where buckets are depends on the frontier alone, and once halved they stay halved: no document remembers them. Answers
do not depend on them either. A batch on the wrong side of a bound costs a drain that opens it, and nothing else.

An example: a day is 64 instants wide, and day 10 was drained, to 704. Buckets are 8 wide at the least: [704, 712),
[712, 720), [720, 736), [736, 768), [768, 896), [896, 1024), [1024, 1536) and so on.

    a     20,000 rows of 704 to 767                         with them the stage has more than 16,384 rows
    b     5 rows of 1,500                                   in [1024, 1536)
    c     9,000 rows of 1,100 to 1,200, settled before      in [1024, 1536)

Of a four batches are written, one for each bucket up to [736, 768). Of b nothing is: 5 rows behind 9,000 may stay a
batch. The next drain, to 768, opens what was made of a, and neither b nor c, however many rows these had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part, UnsealedBatch
from tidemark.model.collection import Collection
from tidemark.model.correction_buffer.buckets import Bucket, BucketChain
from tidemark.model.correction_buffer.stack import Stack
from tidemark.model.frontier import IDENTITY
from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import Interval
from tidemark.plan.answers import check_rows, check_sums
from tidemark.plan.ranges import split_keys, within
from tidemark.plan.tasks import MergeTask, WriteAnswer
from tidemark.plan.unsealed import PartsOf

STAGE_ROWS = 16_384
"""Rows that may be in any bucket: one row group, which any read of a part decodes at least."""
STAGE_BATCHES = 8
"""Batches that may be staged: so many a drain opens more, at most."""
PROPORTIONALITY = 2.0
"""Of the chain rule. Beside 3, which spares a drain every third batch that it opens, it rewrites a third less."""
FINENESS = 3
"""What a drain takes, halved so often, is as wide as the narrowest buckets at least. What is in the bucket that the
frontier cuts is opened too early: about a sixteenth of what is due, on average."""
TIME_BITS = 63
"""Times are at most MAX_TIME."""


@dataclass(frozen=True)
class Rows:
    """Rows with times in `[lower, upper)`: of batches, and of `parts`, which may hold others too. Several runs of them
    may be `merged`, to become one."""

    lower: int
    upper: int
    batches: tuple[UnsealedBatch, ...] = ()
    parts: tuple[Part, ...] = ()
    merged: bool = False

    @property
    def rows(self) -> int:
        """How many there are; of a part that holds others too as many as its span of times suggests."""
        inside = sum(batch.rows for batch in self.batches)
        return inside + sum(_rows_within(part, self.lower, self.upper) for part in self.parts)

    @property
    def pieces(self) -> int:
        return len(self.parts) + sum(batch.part_count for batch in self.batches)

    @property
    def as_they_are(self) -> bool:
        """Whether nothing need be written for them: they are whole batches or parts, one run of them."""
        return not self.merged and all(
            self.lower <= part.first_time and part.last_time < self.upper for part in self.parts
        )

    def cut(self, at: int) -> tuple[Rows, Rows]:
        """What may be before a time, and the rest."""
        before = tuple(part for part in self.parts if part.first_time < at)
        after = tuple(part for part in self.parts if part.last_time >= at)
        return (
            Rows(self.lower, min(at, self.upper), tuple(b for b in self.batches if b.first_time < at), before),
            Rows(max(at, self.lower), self.upper, tuple(b for b in self.batches if b.first_time >= at), after),
        )

    def joined(self, newer: Rows) -> Rows:
        """Both together, to be merged."""
        lower, upper = min(self.lower, newer.lower), max(self.upper, newer.upper)
        return Rows(lower, upper, self.batches + newer.batches, self.parts + newer.parts, merged=True)


Buckets = BucketChain[Stack[Rows]]


@dataclass(frozen=True)
class SettleRequest:
    """Replace `inputs`, stored ahead, by a batch for each of `outputs`, of the rows from `lower` on, on `level`."""

    inputs: tuple[UnsealedBatch, ...]
    outputs: tuple[Rows, ...]
    lower: int
    level: int

    @property
    def interval(self) -> Interval:
        """That of the youngest input."""
        return self.inputs[-1].interval


def buckets_at(frontier: int, width: int) -> Buckets:
    """The buckets beyond a frontier that moves on by about `width`, all empty."""
    bits = max(0, min(TIME_BITS, max(1, width).bit_length() - 1 - FINENESS))
    whole: Buckets = BucketChain.over(Stack(), time_bits=TIME_BITS, min_bits=bits)
    _, beyond = whole.peel(frontier)
    # To halve what is empty costs no fuel. Beyond a frontier in the last bucket of all there is none.
    return beyond.restore(1)[0] if beyond.buckets else whole


def starts_at(frontier: int, width: int) -> tuple[int, ...]:
    """Where rows beyond a frontier are distinguished: there, and where the buckets beyond it begin."""
    beyond = (bucket.start for bucket in buckets_at(frontier, width).buckets)
    return (frontier, *(start for start in beyond if start > frontier))


def cuts(counts: Sequence[int], starts: Sequence[int], *, most: int = 16) -> tuple[int, ...]:
    """Where to cut rows of which `counts[0]` are before `starts[0]`, the frontier, and `counts[i]` in the bucket from
    `starts[i - 1]` on, into at most so many parts: at the frontier, and between buckets of more than STAGE_ROWS."""
    found: list[int] = []
    rows = counts[0]
    due = bool(rows)
    for bucket, count in enumerate(counts[1:]):
        if count and rows and (due or rows + count > STAGE_ROWS) and len(found) < most - 1:
            found.append(starts[bucket])
            rows, due = 0, False
        rows += count
    return tuple(found)


def stage(state: Arrangement) -> tuple[UnsealedBatch, ...]:
    """The batches that are to be sorted by buckets now, or of which one is to be made, oldest first; none if nothing is
    due."""
    if not state.ahead:
        return ()
    buckets = _buckets(state)
    staged = tuple(batch for batch in state.ahead if not batch.level or _straddles(buckets, batch))
    small = len(staged) <= STAGE_BATCHES and sum(batch.rows for batch in staged) <= STAGE_ROWS
    return () if small else staged


def plan_settle(state: Arrangement, staged: Sequence[UnsealedBatch], parts: PartsOf) -> SettleRequest:
    """What becomes of staged batches, whose `parts` are given, and of those in their buckets."""
    lower = state.trace_upper
    staged_parts = [[part for part in parts[batch.id] if part.last_time >= lower] for batch in staged]
    if sum(_rows_within(part, lower, MAX_TIME + 1) for some in staged_parts for part in some) <= STAGE_ROWS:
        together = Rows(lower, MAX_TIME + 1, parts=tuple(part for some in staged_parts for part in some))
        return SettleRequest(tuple(staged), (together,), lower, 0)
    chain = _buckets(state)
    for batch in state.ahead:
        if batch not in staged:
            chain = _pushed(chain, Rows(batch.first_time, batch.last_time + 1, (batch,)), merges=False)
    for batch_parts in staged_parts:
        for rows in _runs(chain, batch_parts, lower):
            chain = _pushed(chain, rows, merges=True)
    stacks = [rows for bucket in chain.buckets for rows in bucket.content.chains]
    outputs = tuple(rows for rows in stacks if rows.parts or rows.merged)
    merged = {batch.id for rows in outputs for batch in rows.batches}
    inputs = tuple(batch for batch in state.ahead if batch in staged or batch.id in merged)
    return SettleRequest(inputs, outputs, lower, 1)


def settle_tasks(
    collection: Collection, request: SettleRequest, rows: Rows, parts: Sequence[Part], *, target_rows: int, prefix: str
) -> list[MergeTask]:
    """One output of a request, of the given parts, by key range, in order."""
    lower = max(request.lower, rows.lower)
    return [
        MergeTask(collection, within(parts, keys), keys, lower, rows.upper, IDENTITY, prefix)
        for keys in split_keys(parts, target_rows=target_rows)
    ]


def check_output(rows: Rows, parts: Sequence[Part], answers: Sequence[WriteAnswer], schema: int) -> None:
    """Raise Corruption unless what was written is what was read, and that what is recorded of the `parts`, where they
    hold no other rows and have today's columns (`schema`)."""
    read = check_sums(answers)
    if all(rows.lower <= p.first_time and p.last_time < rows.upper and p.schema == schema for p in parts):
        recorded = sum(part.digest for part in parts) % DIGEST_MODULUS
        if read != recorded:
            raise Corruption(f"parts ahead have recorded sums of {recorded:016x}, the merge read {read:016x}; refused")


def check(request: SettleRequest, parts: Sequence[Part], answers: Sequence[WriteAnswer], taken: int) -> None:
    """Raise Corruption unless all rows of the inputs' `parts` that are still to come were read, but for those `taken`
    as they are."""
    least = sum(part.rows for part in parts if part.first_time >= request.lower)
    most = sum(part.rows for part in parts if part.last_time >= request.lower)
    if most < taken:
        raise Corruption(f"{taken} rows ahead were taken as they are, the batches hold {most}")
    check_rows("the merge of rows that are not due yet", answers, least=max(0, least - taken), most=most - taken)


def _buckets(state: Arrangement) -> Buckets:
    """The buckets beyond the trace upper; what a drain takes is about the shortest interval of what waits."""
    width = min(batch.interval.upper - batch.interval.lower for batch in state.ahead)
    return buckets_at(state.trace_upper, width)


def _bucket(chain: Buckets, time: int) -> Bucket[Stack[Rows]]:
    """The bucket of a time. What is in the one that the frontier cuts is with the first beyond it."""
    return chain.find(time) or chain.buckets[0]


def _straddles(chain: Buckets, batch: UnsealedBatch) -> bool:
    """Whether a batch has rows to come in several buckets."""
    return _bucket(chain, batch.first_time).start != _bucket(chain, batch.last_time).start


def _runs(chain: Buckets, parts: Sequence[Part], lower: int) -> list[Rows]:
    """Parts of one batch cut into buckets: of each bucket first what need not be written."""
    found: list[Rows] = []
    rest = Rows(lower, MAX_TIME + 1, parts=tuple(parts))
    for bucket in chain.buckets:
        here, rest = rest.cut(bucket.end)
        whole = tuple(part for part in here.parts if replace(here, parts=(part,)).as_they_are)
        others = tuple(part for part in here.parts if part not in whole)
        found += [replace(here, parts=some) for some in (whole, others) if some]
    return found


def _pushed(chain: Buckets, rows: Rows, *, merges: bool) -> Buckets:
    """With rows more in their bucket; merged with older ones there by the chain rule, if that is asked for."""
    bucket = _bucket(chain, rows.lower)
    if merges:
        return chain.holding(bucket, bucket.content.pushed(rows, Rows.joined, PROPORTIONALITY))
    return chain.holding(bucket, Stack((*bucket.content.chains, rows)))


def _rows_within(part: Part, lower: int, upper: int) -> int:
    """About how many rows of a part have times in `[lower, upper)`, by its span of times; one at least."""
    first, last = max(part.first_time, lower), min(part.last_time + 1, upper)
    span = part.last_time + 1 - part.first_time
    return max(1, part.rows * (last - first) // span) if last > first else 0

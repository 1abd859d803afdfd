"""How the unsealed rows of each kind become updates: what must be opened, into which tasks it is cut, and what the
answers must add up to. One strategy per kind (model/kind.py), the same for the drain and for all readers.

    request   (state, lower, upper)           -> the batches that hold rows of the interval, and what these build upon
    task      (request, parts, a key range)   -> one task, for one executor
    check     (request, parts, answers)       -> Corruption if what was written is not what was read

Key ranges are cut by the parts that `cut_by` names, each of about a million rows: seconds of work, far above a task's
fixed cost, far below an executor's memory. An example: 3 million facts over 2 batches, of which 1.2 million are sealed,
are cut into 2 ranges by the sparse indexes of the parts that hold sealed ones. Each task names those parts, the parts
with remembered facts, and the parts of the trace, that overlap its range; it reads of these what its keys touch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Description, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection
from tidemark.model.frontier import IDENTITY
from tidemark.model.full_snapshot import derivative, last_announced
from tidemark.model.kind import ADDITIVE, FULL_SNAPSHOT, KEYED, Kind
from tidemark.plan.answers import check_rows, check_sums
from tidemark.plan.full_snapshots import OTHERWISE, difference_task
from tidemark.plan.ranges import TASK_ROWS, split_keys, within
from tidemark.plan.tasks import (
    DifferenceTask,
    KeyRange,
    MergeTask,
    ResolveTask,
    UnsealedTask,
    WriteAnswer,
)
from tidemark.plan.unsealed import PartsOf, UnsealedRequest

LEAST_ROWS = 65_536
"""Parts of fewer rows on average are rewritten as fewer parts; a single one is never too small."""


class KindPlan(ABC):
    """The decisions that differ between kinds.

    `resolves`: unsealed rows are no updates yet, so that a read needs a task for them. `correction` says how an owner
    corrects a file that was ingested.
    """

    resolves = True
    correction = "put the correction in a new file"

    def request(self, state: Arrangement, lower: int, upper: int) -> UnsealedRequest:
        """What the unsealed rows with times in `[lower, upper)` need; `lower` is the trace upper."""
        batches = tuple(batch for batch in (*state.ahead, *state.pending) if batch.first_time < upper)
        return UnsealedRequest(lower, upper, batches)

    def at_rest(self, request: UnsealedRequest, parts: PartsOf) -> list[Part]:
        """The parts whose rows are updates as they are, so that a read merges them as those of the trace."""
        return []

    def cut_by(self, request: UnsealedRequest, parts: PartsOf) -> list[Part]:
        """The parts that say how much work there is, and where; none if there is none."""
        return request.new(parts)

    def taken_over(self, collection: Collection, request: UnsealedRequest, parts: PartsOf) -> tuple[Part, ...]:
        """The parts in order, if they are what a drain would write from them; else none, and it must write."""
        return ()

    @abstractmethod
    def task(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, keys: KeyRange, prefix: str = ""
    ) -> UnsealedTask:
        """The task for a range of keys."""

    @abstractmethod
    def check(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, answers: Sequence[WriteAnswer]
    ) -> None:
        """Raise Corruption unless the answers to all tasks of a request read all it asked for and kept its sums."""


def plan_of(kind: Kind) -> KindPlan:
    """The strategy of a kind."""
    return _PLANS[kind]


def tasks_of(
    collection: Collection, request: UnsealedRequest, parts: PartsOf, *, target_rows: int = TASK_ROWS, prefix: str = ""
) -> list[UnsealedTask]:
    """The tasks of a request, by key range, in order; none where nothing is new, so that no runner is started."""
    plan = plan_of(collection.kind)
    if not (work := plan.cut_by(request, parts)):
        return []
    ranges = split_keys(work, target_rows=target_rows)
    return [plan.task(collection, request, parts, keys, prefix) for keys in ranges]


class _AdditivePlan(KindPlan):
    """Updates already: merged as they are."""

    resolves = False

    def at_rest(self, request: UnsealedRequest, parts: PartsOf) -> list[Part]:
        return request.new(parts)

    def taken_over(self, collection: Collection, request: UnsealedRequest, parts: PartsOf) -> tuple[Part, ...]:
        """They serve as they are if they hold rows of the interval only, in today's columns, share no key, and each is
        consolidated. Many small ones do not: it pays to write one part of them."""
        ordered = sorted(request.new(parts), key=lambda part: part.first_key)
        if len(ordered) > 1 + sum(part.rows for part in ordered) // LEAST_ROWS:
            return ()
        if any(older.last_key >= newer.first_key for older, newer in pairwise(ordered)):
            return ()
        inside = (request.lower <= part.first_time and part.last_time < request.upper for part in ordered)
        whole = all(part.consolidated and part.schema == collection.schema for part in ordered) and all(inside)
        return tuple(ordered) if whole else ()

    def task(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, keys: KeyRange, prefix: str = ""
    ) -> MergeTask:
        new = within(request.new(parts), keys)
        return MergeTask(collection, new, keys, request.lower, request.upper, IDENTITY, prefix)

    def check(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, answers: Sequence[WriteAnswer]
    ) -> None:
        _check_read(request, answers)
        check_sums(answers)


class _KeyedPlan(KindPlan):
    """Facts: resolved among those that are remembered, against what the trace contained before these."""

    def request(self, state: Arrangement, lower: int, upper: int) -> UnsealedRequest:
        request = super().request(state, lower, upper)
        if request.is_empty:
            return request
        horizon = state.horizon
        batches = (*state.unsealed, *state.remembered)
        near = (batch for batch in batches if batch in request.batches or batch.last_event_time >= horizon)
        below_all = state.has_transactions
        return UnsealedRequest(lower, upper, request.batches, tuple(near), _with_rows(state), horizon, below_all)

    def task(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, keys: KeyRange, prefix: str = ""
    ) -> ResolveTask:
        facts = within(_parts(request.remembered, parts), keys)
        trace = within(_parts(request.trace, parts), keys)
        return ResolveTask(collection, facts, trace, keys, request.lower, request.upper, request.horizon, prefix)

    def check(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, answers: Sequence[WriteAnswer]
    ) -> None:
        # The updates that facts become have another sum than the facts.
        _check_read(request, answers)


class _FullSnapshotPlan(KindPlan):
    """All rows there are, again and again: compared with one another and with what the trace holds."""

    correction = OTHERWISE

    def request(self, state: Arrangement, lower: int, upper: int) -> UnsealedRequest:
        request = super().request(state, lower, upper)
        snapshots = tuple(snapshot for snapshot in state.pending_snapshots if snapshot.known < upper)
        trace = _with_rows(state) if derivative(state.told, snapshots).reads_trace else ()
        return UnsealedRequest(lower, upper, request.batches, trace=trace, snapshots=snapshots, announced=state.told)

    def cut_by(self, request: UnsealedRequest, parts: PartsOf) -> list[Part]:
        return [*_parts(request.trace, parts), *_parts(request.batches, parts)]

    def task(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, keys: KeyRange, prefix: str = ""
    ) -> DifferenceTask:
        learned = [(snapshot, within(parts.get(snapshot.batch, ()), keys)) for snapshot in request.snapshots]
        trace = within(_parts(request.trace, parts), keys)
        return difference_task(collection, trace, request.announced, learned, keys, prefix)

    def check(
        self, collection: Collection, request: UnsealedRequest, parts: PartsOf, answers: Sequence[WriteAnswer]
    ) -> None:
        """Also that what was stored, with what was written, is what the full snapshot announced last said, by the sums
        recorded when it was ingested (where columns changed since, those do not compare)."""
        _check_read(request, answers, compared=sum(batch.rows for batch in request.trace))
        check_sums(answers)
        if not (checked := last_announced(request.snapshots)):
            return
        rows = [part for snapshot in checked for part in parts.get(snapshot.batch, ())]
        said = sum(part.digest for part in rows) % DIGEST_MODULUS
        found = sum(answer.digest_checked for answer in answers) % DIGEST_MODULUS
        if found != said and all(part.schema == collection.schema for part in rows):
            raise Corruption(
                f"after the drain of {_described(request)} the collection holds a sum of {found:016x}, "
                f"full snapshot {checked[0].batch} has {said:016x}; refused"
            )


_PLANS: dict[Kind, KindPlan] = {ADDITIVE: _AdditivePlan(), KEYED: _KeyedPlan(), FULL_SNAPSHOT: _FullSnapshotPlan()}


def _check_read(request: UnsealedRequest, answers: Sequence[WriteAnswer], *, compared: int = 0) -> None:
    """Every row of batches that are wholly in the interval was read, and no more than the others can hold; beside them
    the rows `compared` with, all."""
    inside = [b for b in request.batches if b.first_time >= request.lower and b.last_time < request.upper]
    least = compared + sum(batch.rows for batch in inside)
    most = compared + sum(batch.rows for batch in request.batches)
    check_rows(f"the drain of {_described(request)}", answers, least=least, most=most)


def _described(request: UnsealedRequest) -> Description:
    return Description(request.lower, request.upper)


def _with_rows(state: Arrangement) -> tuple[TraceBatch, ...]:
    return tuple(batch for batch in state.trace if batch.rows)


def _parts(batches: Sequence[UnsealedBatch | TraceBatch], parts: PartsOf) -> list[Part]:
    return [part for batch in batches for part in parts[batch.id]]

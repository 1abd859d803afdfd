"""What a read has to open, and whether it may be answered at all; and the tasks by which it is answered.

    plan    plan_as_of, plan_changes         the batches that can hold what was asked, from the state alone
    open    storage/sidecars/parts_table.py  the records of their parts, which say where rows can be
    part    plan/unmerged.py                 on Spark: the parts that are the answer as they are, and need no task
    cut     read_tasks                       one task per key range, with the parts it needs and nothing else
    runs    arrow/runs.py                    the parts, and the updates of unsealed rows, as sorted runs
    merge   arrow/kernels/merge.py           rounds of rows that belong together, added up
    answer  arrow/read.py, spark/read.py     in the columns of as_of or of changes

Each step takes what the one before it made. An example: `as_of(25)` of a keyed collection with the trace [0, 20), seal
40 and one unsealed batch of times 18 to 30 asks for the trace, for the facts of [20, 26), and for the trace once more
in those rows that happened up to the horizon. With one key range that is one task; with 3 million rows and a target of
one million it is three, which share no key, so that each can be answered on another machine.

What it costs: a part is opened if it overlaps the range of keys and of times; its row groups in that range of keys are
read once, the time columns only where the part's bounds say that they matter.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, TraceBatch
from tidemark.model.chunk.law import Chunk, Miss, Span, Wanted, can_matter, miss_of
from tidemark.model.collection import Collection
from tidemark.model.frontier import EMPTY, CompactionFunction
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.model.interval import Interval
from tidemark.plan.kinds import plan_of
from tidemark.plan.ranges import bundled, groups_among, split_within, within
from tidemark.plan.tasks import ALL_KEYS, AtRest, KeyRange, ReadTask
from tidemark.plan.unsealed import PartsOf, UnsealedRequest


@dataclass(frozen=True)
class ReadRequest:
    """Updates with `after < time <= upto` and `event_time <= event_upto`, of `keys`. Some that happened before
    `event_from` may be missing: whoever asks so looks at none of them.

    `trace` holds those below the trace upper; `unsealed` are the rows from there on. Times are given as `function`
    forwards them, whether or not a compaction has run yet. `sums`: what is answered adds them up over all times.
    `newest`: it is all that is known by now, whenever it is asked.

    Of rows outside the `spans` of columns, some or all may be missing: whoever asks so filters the answer by a
    condition that implies them. Which columns a read may have spans of is said in model/chunk/law.py.
    """

    collection: Collection
    function: CompactionFunction
    after: int
    upto: int
    event_upto: int
    keys: KeyRange
    trace: tuple[TraceBatch, ...]
    unsealed: UnsealedRequest
    sums: bool = False
    newest: bool = False
    event_from: int = 0
    spans: tuple[Span, ...] = ()

    @cached_property
    def wanted(self) -> Wanted:
        """What its chunks are asked for."""
        return Wanted(self.after, self.upto, self.event_upto, self.event_from, self.function, self.spans)

    def reaches(self, chunk: Chunk) -> bool:
        """Whether a part, or a part below a hull, can hold an update of the read."""
        return can_matter(chunk, self.wanted, (self.keys,))

    def miss_of(self, part: Part) -> Miss | None:
        """Why a part holds no update of the read that counts; None: it may hold one."""
        miss = miss_of(part, self.wanted, (self.keys,))
        return Miss.SUMS if miss is None and self.sums and part.cancels and self._holds_whole(part) else miss

    def _holds_whole(self, part: Part) -> bool:
        inside = self.after < part.first_time and part.last_time <= self.upto
        return inside and part.last_event_time <= self.event_upto


def read_tasks(
    request: ReadRequest,
    parts: PartsOf,
    *,
    target_rows: int | None = None,
    but: Names[str] = (),
    leading: int | None = None,
) -> list[ReadTask]:
    """The tasks of a read whose batches were opened, in order of keys, of about `target_rows` rows each (None: one
    task). Parts at rest whose files are in `but` are answered with otherwise (plan/unmerged.py). With `leading` keys
    that are equal in so many of their first columns are in one task."""
    unsealed = request.unsealed
    rest = [
        AtRest(tuple(part for part in some.parts if part.file.key not in but), some.after)
        for some in at_rest(request, parts)
    ]
    plan = plan_of(request.collection.kind)
    new = plan.cut_by(unsealed, parts) if plan.resolves and not unsealed.is_empty else []
    opened = [*(part for some in rest for part in some.parts), *new]
    ranges = [request.keys]
    if target_rows is not None:
        ranges = split_within(request.keys, opened, target_rows=target_rows, leading=leading)
    return [
        ReadTask(
            request.collection,
            keys,
            request.after,
            request.upto,
            request.event_upto,
            request.function,
            tuple(replace(some, parts=within(some.parts, keys)) for some in rest),
            plan.task(request.collection, unsealed, parts, keys) if new else None,
            spans=request.spans,
        )
        for keys in ranges
    ]


def read_tasks_within(
    request: ReadRequest,
    parts: PartsOf,
    ranges: Sequence[KeyRange],
    *,
    target_rows: int,
    but: Names[str] = (),
    leading: int | None = None,
) -> list[ReadTask]:
    """The tasks of a read of some ranges of keys, which are ascending and disjoint: each of as many as hold about
    `target_rows` rows. With `leading` no range is cut between keys that are equal in so many of their first columns."""
    opened = [part for some in at_rest(request, parts) for part in some.parts if part.file.key not in but]
    tasks = []
    for bundle in bundled(ranges, opened, target_rows=target_rows, leading=leading):
        keys = KeyRange(bundle[0].lower, bundle[-1].upper)
        (task,) = read_tasks(replace(request, keys=keys), parts, but=but)
        rest = tuple(replace(some, parts=_among(some.parts, bundle)) for some in task.at_rest)
        tasks.append(replace(task, at_rest=rest, ranges=bundle if len(bundle) > 1 else ()))
    return tasks


def _among(parts: Iterable[Part], ranges: Sequence[KeyRange]) -> tuple[Part, ...]:
    return tuple(part for part in parts if groups_among(part, ranges))


def at_rest(request: ReadRequest, parts: PartsOf) -> tuple[AtRest, AtRest]:
    """The parts of a read whose rows are updates as they are: of the trace, and of unsealed batches."""
    trace, unsealed = (
        tuple(part for part in some if request.miss_of(part) is None) for some in considered(request, parts)
    )
    # Rows of unsealed batches below the trace upper are in the trace.
    beyond = max(request.after, request.unsealed.lower - 1)
    return AtRest(trace, request.after), AtRest(unsealed, beyond)


def considered(request: ReadRequest, parts: PartsOf) -> tuple[list[Part], list[Part]]:
    """The same before it is asked which of them can matter."""
    trace = [part for batch in request.trace for part in parts[batch.id]]
    return trace, plan_of(request.collection.kind).at_rest(request.unsealed, parts)


def plan_as_of(
    state: Arrangement, time: int | None = None, event_time: int | None = None, keys: KeyRange = ALL_KEYS
) -> ReadRequest:
    """Read the collection as known at `time` (None: the latest knowledge, seal - 1), as of `event_time` (None: all).

    Raises InvalidUsage outside `[since, seal)`, except for what retention keeps below since, with both frontiers and
    the nearest readable times: a read is never answered with less. And for event times that a derived collection does
    not have.
    """
    _check_sealed(state)
    upto = state.seal - 1 if time is None else time
    _check_readable(state, upto)
    if event_time is not None:
        _check_event_times(state, event_time)
    if event_time is not None and not state.function.keeps(event_time):
        raise InvalidUsage(
            f"event time {_at(event_time)} is below since {_at(state.since)}, and that history was merged"
            + _nearest(state, event_time)
        )
    request = _request(state, -1, upto, MAX_TIME if event_time is None else event_time, keys)
    return replace(request, sums=True, newest=time is None and event_time is None)


def plan_changes(
    state: Arrangement, after: int, upto: int | None = None, keys: KeyRange = ALL_KEYS, *, merged: bool = False
) -> ReadRequest:
    """Read the updates with `after < time <= upto` (None: seal - 1). `after` = -1 reads from the beginning.

    Raises InvalidUsage unless both are readable (as `plan_as_of`; from the beginning: while nothing was merged, or with
    `merged`: then what was learned before history begins comes with the time at which it begins).
    """
    _check_sealed(state)
    upto = state.seal - 1 if upto is None else upto
    if not (after == -1 and (state.since == 0 or merged)):
        _check_readable(state, after)
    _check_readable(state, upto)
    if after > upto:
        raise InvalidUsage(f"changes after {_at(after)} up to {_at(upto)}: the first must not be later than the second")
    return _request(state, after, upto, MAX_TIME, keys)


def history_begins(state: Arrangement, span: Interval) -> int | None:
    """The time at which history begins, if that is within a span: what was learned by then is merged."""
    return state.since if state.since and state.since in span else None


def plan_updates(state: Arrangement, upto: int = MAX_TIME - 1, keys: KeyRange = ALL_KEYS) -> ReadRequest:
    """Read all updates with `time <= upto`, as far as they were not forwarded, whether they are sealed or not: what a
    derived collection holds by all its commits, and what it does not hold yet though that is decided."""
    return _request(state, -1, upto, MAX_TIME, keys)


def _request(state: Arrangement, after: int, upto: int, event_upto: int, keys: KeyRange) -> ReadRequest:
    trace = tuple(
        batch
        for batch in state.trace
        if batch.rows and batch.description.lower <= upto and batch.description.last_possible > after
    )
    unsealed = plan_of(state.collection.kind).request(state, state.trace_upper, upto + 1)
    return ReadRequest(state.collection, state.function, after, upto, event_upto, keys, trace, unsealed)


def _check_event_times(state: Arrangement, event_time: int) -> None:
    """A derived collection has the event times of its input, as far back as they were distinguished there, if each of
    its rows follows from one; else it has none."""
    if event_time >= state.event_times_from:
        return
    name = state.collection.name
    if state.event_times_from == EMPTY:
        raise InvalidUsage(
            f"the rows of collection {name} have no event times: each follows from several rows of its inputs; "
            "read it as known at a time, without an event time"
        )
    raise InvalidUsage(
        f"event time {_at(event_time)} is below {_at(state.event_times_from)}, from where on event times were "
        f"kept in the input of collection {name} when it was consumed"
    )


def _check_sealed(state: Arrangement) -> None:
    if state.seal == 0:
        raise InvalidUsage(
            "nothing is sealed yet, so nothing is complete: "
            + ("correct it and seal it" if state.collection.is_derived else "ingest an interval and seal it")
        )


def _check_readable(state: Arrangement, time: int) -> None:
    if time < 0 or time >= state.seal or not state.function.keeps(time):
        raise InvalidUsage(
            f"time {_at(time)} is outside the readable [since {_at(state.since)}, seal {_at(state.seal)})"
            + _nearest(state, time)
        )


def _nearest(state: Arrangement, time: int) -> str:
    """The readable times on both sides, where there are any."""
    newest = state.seal - 1
    if not 0 <= time <= newest:
        return f"; the newest readable is {_at(newest)}" if time > newest and state.function.keeps(newest) else ""
    some = [near for near in state.function.nearest(time) if near is not None and near <= newest]
    return f"; nearest readable: {' and '.join(_at(near) for near in some)}" if some else ""


def _at(time: int) -> str:
    return format_instant(time) if time >= 0 else str(time)

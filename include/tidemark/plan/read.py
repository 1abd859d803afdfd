"""What a read has to open, and whether it may be answered at all."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.dump import Dump
from tidemark.model.instant import MAX_TIME, format_instant


@dataclass(frozen=True)
class ReadRequest:
    """Updates with `after < time <= upto` and `event_time <= event_upto`.

    `trace` holds those below the trace upper. `unsealed` holds the rest, as they arrived: of a keyed collection they
    are facts, to be resolved among the facts of `remembered` and what `trace_before` held below `horizon`. Of a
    collection of dumps they are the rows of `dumps`, to be compared with one another and with `trace_before`.
    """

    after: int
    upto: int
    event_upto: int
    trace: tuple[TraceBatch, ...]
    unsealed: tuple[UnsealedBatch, ...]
    remembered: tuple[UnsealedBatch, ...]
    trace_before: tuple[TraceBatch, ...]
    horizon: int
    trace_upper: int
    dumps: tuple[Dump, ...] = ()

    def needs(self, part: Part) -> bool:
        """Whether a part can hold an update of the read."""
        return part.last_time > self.after and part.first_time <= self.upto and part.first_event_time <= self.event_upto


def plan_as_of(state: Arrangement, time: int | None = None, event_time: int | None = None) -> ReadRequest:
    """Read the collection as known at `time` (None: the latest complete one, seal - 1), as of `event_time` (None: all).

    Raises InvalidUsage outside `[since, seal)`, except for what retention keeps below since, with both frontiers and
    the nearest readable times: a read is never answered with less.
    """
    _check_sealed(state)
    upto = state.seal - 1 if time is None else time
    _check_readable(state, upto)
    if event_time is not None and not state.function.keeps(event_time):
        raise InvalidUsage(
            f"event time {_at(event_time)} is below since {_at(state.since)}, and that history was merged"
            + _nearest(state, event_time)
        )
    return _request(state, -1, upto, MAX_TIME if event_time is None else event_time)


def plan_changes(state: Arrangement, after: int, upto: int | None = None) -> ReadRequest:
    """Read the updates with `after < time <= upto` (None: seal - 1). `after` = -1 reads from the beginning.

    Raises InvalidUsage unless both are readable (as `plan_as_of`; from the beginning: while nothing was merged).
    """
    _check_sealed(state)
    upto = state.seal - 1 if upto is None else upto
    if not (after == -1 and state.since == 0):
        _check_readable(state, after)
    _check_readable(state, upto)
    if after > upto:
        raise InvalidUsage(f"changes after {_at(after)} up to {_at(upto)}: the first must not be later than the second")
    return _request(state, after, upto, MAX_TIME)


def _request(state: Arrangement, after: int, upto: int, event_upto: int) -> ReadRequest:
    trace = tuple(
        batch
        for batch in state.trace
        if batch.rows and batch.description.lower <= upto and batch.description.last_possible > after
    )
    unsealed = tuple(batch for batch in state.pending if batch.first_time <= upto)
    keyed = state.collection.keyed and bool(unsealed)
    dumps = tuple(dump for dump in state.pending_dumps if dump.time <= upto)
    horizon = state.horizon if keyed else 0
    return ReadRequest(
        after,
        upto,
        event_upto,
        trace,
        unsealed,
        tuple(b for b in state.unsealed if b in unsealed or b.last_event_time >= horizon) if keyed else (),
        tuple(b for b in state.trace if b.rows) if keyed or dumps else (),
        horizon,
        state.trace_upper,
        dumps,
    )


def _check_sealed(state: Arrangement) -> None:
    if state.seal == 0:
        raise InvalidUsage("nothing is sealed yet, so nothing is complete: ingest an interval and seal it")


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

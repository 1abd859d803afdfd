"""Reads of an arrangement below `since`, whatever was merged physically and by which function: as of old."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, SMALL, of_updates, updates, write
from tests.pure.arrow.test_read import changed, current_rows, kind, unsealed
from tests.support.budget import laws
from tests.support.reading import as_of, changes
from tidemark.arrow import runs
from tidemark.arrow.kernels import merge
from tidemark.arrow.kernels.merge import merge_range
from tidemark.errors import InvalidUsage
from tidemark.model import update as model
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, Part, TraceBatch
from tidemark.model.collection import Collection
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.model.update import Update
from tidemark.plan.read import plan_as_of, plan_changes
from tidemark.plan.tasks import KeyRange, MergeTask
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

SEAL = 13
FUNCTIONS = [
    CompactionFunction(),
    CompactionFunction(4),
    CompactionFunction(8, (Rung(0, 2),)),
    CompactionFunction(8, (Rung(4, 4),)),
    CompactionFunction(12, (Rung(8, 2), Rung(0, 4))),
    CompactionFunction(11, (Rung(8, 1), Rung(4, 4))),
    CompactionFunction(12, (Rung(0, 12),)),
    CompactionFunction(12),
    CompactionFunction(20, (Rung(8, 4), Rung(0, 8))),
]
functions = st.sampled_from(FUNCTIONS)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little that groups and keys straddle what is in memory."""
    monkeypatch.setattr(runs, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "BUFFERED_ROWS", 8)


def merged(
    store: MemoryStore, of: Collection, parts: tuple[Part, ...], function: CompactionFunction
) -> tuple[Part, ...]:
    return merge_range(store, MergeTask(of, parts, KeyRange(), 0, 10**6, function, "out")).parts


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Update], CompactionFunction, list[tuple[int, int, CompactionFunction]]]:
    """Updates; what is allowed; and trace batches, each forwarded as far as some function that the allowed absorbs."""
    of = SMALL
    function = draw(functions)
    fitting = [f for f in FUNCTIONS if function.absorbs(f)]
    cuts = sorted(draw(st.sets(st.integers(1, SEAL - 1), max_size=3)))
    bounds = list(zip([0, *cuts], cuts, strict=False))
    batches = [(lower, upper, draw(st.sampled_from(fitting))) for lower, upper in bounds]
    return draw(updates(of, most=20, times=SEAL - 1)), function, batches


def arranged(
    store: MemoryStore, of: Collection, some: list[Update], function: CompactionFunction, batches: list
) -> Arrangement:
    """What earlier compactions left of the updates, each batch merged a second time by the kernel, and the rest as it
    came."""
    trace = []
    for lower, upper, done in batches:
        inside = [u for u in some if lower <= u.time < upper]
        parts = write(store, of, of_updates(of, model.consolidate(inside)))
        parts = merged(store, of, merged(store, of, parts, CompactionFunction()), done)
        ref = parts_table.save(store, f"t{lower}.json", parts) if parts else None
        description = Description(lower, upper, done.since, done.rungs)
        rows = sum(part.rows for part in parts)
        trace.append(TraceBatch(f"t{lower}", description, 0, rows, 0, 0, ref, len(parts)))
    upper = batches[-1][1] if batches else 0
    waiting = write(store, of, of_updates(of, [u for u in some if u.time >= upper]))
    pending = (unsealed(store, "u", 0, waiting),) if waiting else ()
    state = Arrangement(
        of, complete_below=SEAL, seal=SEAL, since=function.since, rungs=function.rungs, unsealed=pending
    )
    return replace(state, trace=tuple(trace))


@laws
@given(cases(), st.data())
def test_every_kept_instant_reads_exactly_as_it_did(case: tuple, data: st.DataObject) -> None:
    some, function, batches = case
    store, of = MemoryStore(), SMALL
    state = arranged(store, of, some, function, batches)
    kept = [time for time in range(SEAL) if function.keeps(time)]
    best = 2**63 - 1
    for time in kept:
        assert current_rows(as_of(store, state, time=time), of) == model.as_of(some, time=time, event_time=best)
        event_time = data.draw(st.sampled_from([*kept, max(SEAL, function.since), best]))
        found = as_of(store, state, time=time, event_time=event_time)
        assert current_rows(found, of) == model.as_of(some, time=time, event_time=event_time)
    if kept:
        after, upto = sorted((data.draw(st.sampled_from(kept)), data.draw(st.sampled_from(kept))))
        changed_rows = changed(changes(store, state, after=after, upto=upto), of)
        assert changed_rows == model.changes(model.advance(some, function), after=after, upto=upto)
        net = changes(store, state, after=after, upto=upto, net=True).to_pylist()
        inside = [u._replace(time=0, event_time=0) for u in some if after < u.time <= upto]
        summed = [(*u.key, *u.value, kind(u.diff), u.diff) for u in model.consolidate(inside)]
        assert [tuple(row.values()) for row in net] == summed


@laws
@given(cases())
def test_any_other_time_below_since_is_refused_with_the_nearest_readable(case: tuple) -> None:
    _, function, _ = case
    state = Arrangement(APPEND, complete_below=SEAL, seal=SEAL, since=function.since, rungs=function.rungs)
    kept = [time for time in range(SEAL) if function.keeps(time)]
    for time in range(SEAL):
        if time in kept:
            continue
        sides = [max((t for t in kept if t < time), default=None), min((t for t in kept if t > time), default=None)]
        for ask in (
            lambda time=time: plan_as_of(state, time),
            lambda time=time: plan_as_of(state, kept[-1] if kept else time, time),
            lambda time=time: plan_changes(state, time),
        ):
            with pytest.raises(InvalidUsage) as refused:
                ask()
            for near in sides:
                assert near is None or f"{near:06}Z" in str(refused.value)

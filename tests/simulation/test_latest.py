"""The latest rows of real collections of every kind, at every step of random histories: what a search through the rows
of `as_of` finds, and to each probe what that finds of what was known then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.world import DAY, World, certify, collection, interval
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Column, ColumnType, Envelope, Gate
from tidemark.model.retention import Retention, Step

pytestmark = pytest.mark.simulation
VALUE = (Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
STEPS = ("ingest", "seal", "drain", "compact")
Named = dict[str, Any]


def opened(world: World) -> OpenCollection:
    return OpenCollection(Pinned("memory://none", world.truth, world.log(), world.head))


def latest(rows: Iterable[Named], t: int, within: int | None = None, value: str | None = None) -> dict[int, Named]:
    """By key the latest of some rows of an as-of; of those that have a `value`, if told."""
    best: dict[int, tuple[Any, Named]] = {}
    for row in rows:
        at = row["at"]
        if at is None or at > t or (within is not None and at < t - within):
            continue
        if row["_multiplicity"] < 0:
            raise LookupError(row["k"])
        order = (at, row["v"] is not None, row["v"] or "")
        if (value is None or row[value] is not None) and (row["k"] not in best or best[row["k"]][0] < order):
            best[row["k"]] = order, row
    return {key: row for key, (_, row) in sorted(best.items())}


def check(collection: OpenCollection, times: Sequence[int | None], event_times: Sequence[int | None] = (None,)) -> None:
    for time in times:
        for event_time in event_times:
            rows = collection.as_of(time, event_time).to_arrow().to_pylist()
            for t, within in ((2, None), (5, 2), (9, None)):
                asked = {"within": within, "time": time, "event_time": event_time}
                try:
                    found = latest(rows, t, within)
                except LookupError:
                    with pytest.raises(InvalidUsage, match=r"a row of the key k=\d is held fewer than zero times"):
                        collection.latest_at("at", t, **asked).to_arrow()
                    continue
                answer = collection.latest_at("at", t, **asked).to_arrow().to_pylist()
                assert answer == [{name: row[name] for name in ("k", "v", "at")} for row in found.values()]
                own = latest(rows, t, within, "v")
                none = {"v": None, "at": None}
                assert collection.latest_at("at", t, each=True, **asked).to_arrow().to_pylist() == [
                    {"k": k, "v": own.get(k, none)["v"], "v_at": own.get(k, none)["at"], "at": row["at"]}
                    for k, row in found.items()
                ]


def rows_of(day: int, envelope: Envelope) -> st.SearchStrategy[list[Named]]:
    """Rows of a day, some of which happened days before."""
    value = {"k": st.integers(1, 3), "v": st.sampled_from([None, "a", "b"]), "at": st.sampled_from([None, *range(7)])}
    if envelope is Envelope.SNAPSHOT:
        return st.lists(st.fixed_dictionaries(value), max_size=6)
    times = {"t": st.integers(day * DAY, day * DAY + DAY - 1), "e": st.integers(max(0, day - 2) * DAY, day * DAY)}
    if envelope is Envelope.UPDATES:
        times["d"] = st.sampled_from([1, 1, 1, 2, -1])
    if envelope in (Envelope.UPSERT, Envelope.DEBEZIUM):
        times |= {"o": st.integers(0, 9), "gone": st.sampled_from([False, False, False, True])}
    return st.lists(st.fixed_dictionaries(value | times), max_size=8)


def history(world: World, days: Sequence[tuple[list[Named], str]]) -> Iterator[int]:
    """Days of rows through all steps, or until one of them; after each step there is something to ask."""
    for day, (rows, until) in enumerate(days):
        world.land(day, "a", rows)
        world.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(world.landing)))
        world.run(lambda job, day=day: seal(job, interval(day)))
        certify(world.job(), Gate.FRONTIER)
        yield day
        for step, of in (("drain", drain), ("compact", compact)):
            if STEPS.index(step) <= STEPS.index(until):
                world.run(lambda job, day=day, of=of: of(job, interval(day)))
                certify(world.job(), Gate.TRACE)
                yield day


KEPT = (Retention(), Retention("tiered", keep_recent=1), Retention("ladder", steps=(Step(None, 12), Step(2, 30))))


def readable(state: Arrangement) -> list[int]:
    """Times that can be asked: the oldest that is kept, one between, and the newest."""
    kept = [time for time in range(state.seal) if state.function.keeps(time)]
    return sorted({kept[0], kept[len(kept) // 2], kept[-1]})


@pytest.mark.parametrize("envelope", list(Envelope))
def test_at_every_step_of_a_random_history(tmp_path_factory: pytest.TempPathFactory, envelope: Envelope) -> None:
    days = st.tuples(*(st.tuples(rows_of(day, envelope), st.sampled_from(STEPS)) for day in range(4)))

    @settings(deadline=None, max_examples=12)
    @given(days, st.sampled_from(KEPT))
    def walk(some: Sequence[tuple[list[Named], str]], kept: Retention) -> None:
        declared = collection(envelope, value=VALUE, live_batches=2, retention=kept)
        world = World(tmp_path_factory.mktemp("landing"), declared)
        for _ in history(world, some):
            times = readable(world.state)
            check(opened(world), times, [None] if envelope is Envelope.SNAPSHOT else [None, times[-2:][0]])

    walk()

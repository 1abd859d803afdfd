"""The latest rows of real collections of every kind, at every step of random histories: what a search through the rows
of `as_of` finds, and to each probe what that finds of what was known then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.budget import DEEP, budget
from support.world import DAY, World, certify, collection, interval
from tidemark.api.answer import Answer
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Column, ColumnType, Envelope, Gate, Layout
from tidemark.model.retention import Retention, Step

pytestmark = pytest.mark.simulation
VALUE = (Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
STEPS = ("ingest", "seal", "drain", "compact")
KEYS = (1, 2, 3)
EXAMPLES, KEYS_A_QUESTION = budget(ci=(1, 1), deep=(12, len(KEYS)))
Named = dict[str, Any]


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 2)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 2)


def opened(world: World) -> OpenCollection:
    return OpenCollection(Pinned("memory://none", world.truth, world.log(), world.head))


def latest(rows: Iterable[Named], t: int, within: int | None = None, value: str | None = None) -> dict[int, Named]:
    """By key the latest of some rows of an as-of; of those that have a `value`, if one is named. LookupError, with
    the key, where a row that is not before it has a negative multiplicity."""
    best: dict[int, tuple[Any, Named]] = {}
    below: list[Named] = []
    for row in rows:
        at = row["at"]
        if at is None or at > t or (within is not None and at < t - within):
            continue
        if value is not None and row[value] is None:
            continue
        if row["_multiplicity"] < 0:
            below.append(row)
            continue
        order = (at, row["v"] is not None, row["v"] or "")
        if row["k"] not in best or best[row["k"]][0] < order:
            best[row["k"]] = order, row
    for row in below:
        if row["k"] not in best or row["at"] >= best[row["k"]][0][0]:
            raise LookupError(row["k"])
    return {key: row for key, (_, row) in sorted(best.items())}


def check(collection: OpenCollection, times: Sequence[int | None], event_times: Sequence[int | None] = (None,)) -> None:
    """The latest rows of all keys, and of one key after another."""
    keys = cycle(KEYS)
    for time in times:
        for event_time in event_times:
            rows = collection.as_of(time, event_time).to_arrow().to_pylist()
            for t, within in ((2, None), (5, 2), (9, None)):
                asked = {"within": within, "time": time, "event_time": event_time}
                for key in (None, *(next(keys) for _ in range(KEYS_A_QUESTION))):
                    of_key = rows if key is None else [row for row in rows if row["k"] == key]
                    where = None if key is None else {"k": key}
                    for each in (False, True):
                        answer = collection.latest_at("at", t, where, each=each, **asked)
                        check_one(of_key, t, within, each, answer)


def check_one(rows: Sequence[Named], t: int, within: int | None, each: bool, answer: Answer) -> None:
    """Whether an answer is what a search through the rows of `as_of` finds, or refuses as it does."""
    try:
        found, own = latest(rows, t, within), latest(rows, t, within, "v") if each else {}
    except LookupError:
        with pytest.raises(InvalidUsage, match=r"a row of the key k=\d has a negative multiplicity"):
            answer.to_arrow()
        return
    none = {"v": None, "at": None}
    assert answer.to_arrow().to_pylist() == [
        {"k": k, "v": own.get(k, none)["v"], "v_at": own.get(k, none)["at"], "at": row["at"]}
        if each
        else {name: row[name] for name in ("k", "v", "at")}
        for k, row in found.items()
    ]


def check_join(collection: OpenCollection, times: Sequence[int]) -> None:
    """Each probe asks at a time, as known at one of some times; several ask the same, in no order."""
    asked = [(k, t, known) for known in times for t in (4, 0, 9) for k in (3, 1, 2, 9, 1)]
    keys, ts, known = zip(*asked, strict=True)
    knew = pa.array(known, pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"k": keys, "t": ts, "knew": knew})
    rows = {time: collection.as_of(time).to_arrow().to_pylist() for time in times}
    answer = collection.latest_at("at", at=table, at_column="t", known_at="knew")
    try:
        found = [latest(rows[known], t).get(k) for k, t, known in asked]
    except LookupError:
        with pytest.raises(InvalidUsage, match=r"a row of the key k=\d has a negative multiplicity"):
            answer.to_arrow()
        return
    answered = [(row["v"], row["_at"]) for row in answer.to_arrow().to_pylist()]
    assert answered == [(None, None) if row is None else (row["v"], row["at"]) for row in found]
    newest = table.filter(pc.equal(table["knew"], knew[-1]))
    now = collection.latest_at("at", at=newest, at_column="t").to_arrow()
    assert now.select(["v", "_at"]).to_pylist() == answer.to_arrow().select(["v", "_at"]).to_pylist()[-len(newest) :]


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


@pytest.mark.parametrize(
    ("envelope", "layout"),
    [
        *((envelope, None) for envelope in Envelope),
        *((envelope, Layout("at", 2)) for envelope in (Envelope.APPEND, Envelope.UPDATES, Envelope.SNAPSHOT)),
    ],
    ids=lambda each: each.name if isinstance(each, Envelope) else "by time" if each else "by key",
)
def test_at_every_step_of_a_random_history(
    tmp_path_factory: pytest.TempPathFactory, envelope: Envelope, layout: Layout | None
) -> None:
    days = st.tuples(*(st.tuples(rows_of(day, envelope), st.sampled_from(STEPS)) for day in range(4)))

    @settings(deadline=None, max_examples=EXAMPLES, derandomize=not DEEP)
    @given(days, st.sampled_from(KEPT), st.sampled_from([(), ("at",)]))
    def walk(some: Sequence[tuple[list[Named], str]], kept: Retention, timelines: tuple[str, ...]) -> None:
        named = ("at",) if layout else timelines
        declared = collection(envelope, value=VALUE, live_batches=2, retention=kept, timelines=named, layout=layout)
        world = World(tmp_path_factory.mktemp("landing"), declared)
        for _ in history(world, some):
            times = readable(world.state)
            check_join(opened(world), times)
            check(opened(world), times, [None] if envelope is Envelope.SNAPSHOT else [None, times[-2:][0]])

    walk()

"""For n = 1, 2, …: the nth call to storage fails, the step is run again, and nothing is lost or counted twice."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from simulation.script import answers, steps, world
from support.budget import budget
from support.faulty import Fault, FaultyStore, LostAckStore
from support.stores import Contents, Stores
from support.world import World
from tests.support.reading import changes
from tidemark.model.collection import Envelope
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.store import AlreadyExists, Indeterminate

STORES = budget(ci=["memory"], deep=["memory", "local"])
pytestmark = [pytest.mark.simulation, pytest.mark.parametrize("stores", STORES, indirect=True, scope="module")]
ENVELOPES = [Envelope.APPEND, Envelope.UPSERT, Envelope.SNAPSHOT]


def run(made: World, folder, days: int) -> None:
    for step in steps(folder, days):
        made.run(step)


def objects(made: World) -> Counter[str]:
    """Keys, with the names that writers draw for their files made alike."""
    return Counter(re.sub(r"[0-9a-f]{32}", "#", info.key) for info in made.truth.list(""))


def keep(patch: pytest.MonkeyPatch, envelope: Envelope) -> None:
    """Of appends what is small stays in the state; of others tables and leaves are objects, however small."""
    if envelope is not Envelope.APPEND:
        patch.setattr(parts_table, "SMALL", 0)


@pytest.fixture(scope="module")
def clean(tmp_path_factory, stores: Stores, days: int):
    def once(envelope: Envelope) -> tuple[list, Counter]:
        folder = tmp_path_factory.mktemp(envelope)
        made = world(folder, envelope, stores())
        with pytest.MonkeyPatch.context() as patch:
            keep(patch, envelope)
            run(made, folder, days)
        return answers(made), objects(made)

    return {envelope: once(envelope) for envelope in ENVELOPES}


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("dies", [True, False], ids=["killed", "refused or unanswered"])
def test_any_single_fault_then_the_step_again_changes_nothing(
    tmp_path, clean, stores: Stores, days: int, writes: int, looks: int, envelope, after, dies, monkeypatch
):
    """Every call of every step fails once. Now and then the days go on from there, to the same end.

    Of the calls that write one in `writes` fails, of those that only look one in `looks`: another one in every step,
    and of those that are refused others than of those that kill.
    """
    expected, _ = clean[envelope]
    keep(monkeypatch, envelope)
    made = world(tmp_path, envelope, stores())
    contents = Contents(made.truth)
    script = list(steps(tmp_path, days))
    fired: list[str] = []
    for at, step in enumerate(script):
        before = contents.take()
        made.store = faulty = FaultyStore(made.truth)
        made.run(step)
        then, known, wrote = contents.take(), so_far(made, contents), faulty.wrote
        last = len(wrote) if after else faulty.calls
        for nth in range(1, last + 1):
            if (nth + at + dies) % (writes if after or nth in wrote else looks):
                continue
            restore(made, contents, before)
            made.store = faulty = FaultyStore(made.truth, Fault(nth, after, dies))
            made.run(step)
            assert faulty.fired, f"step {at} makes fewer than {nth} calls the second time"
            fired.append(faulty.fired.split("/")[0])
            assert so_far(made, contents) == known, f"step {at}, call {nth}: {faulty.fired}"
            if len(fired) % 50 == 0:
                made.store = made.truth
                for later in script[at + 1 :]:
                    made.run(later)
                assert answers(made) == expected, f"step {at}, call {nth}: {faulty.fired}"
        made.store = made.truth
        restore(made, contents, then)
    assert answers(made) == expected
    written = {"create versions", "close_output data"}
    assert written <= set(fired)
    written |= {"create ledger", "create data"} if envelope is not Envelope.APPEND else set()
    looked = {"read versions", "keys versions", "open_input data", "open_output data"}
    assert writes > 1 or written <= set(fired)
    assert after or looks > 2 or looked <= set(fired)


def restore(made: World, contents: Contents, objects: dict[str, bytes]) -> None:
    contents.put_back(objects)
    made.forget()


def so_far(made: World, contents: Contents) -> list:
    """What is known after a step, whatever versions it took."""
    made.forget()
    store = contents.as_memory()
    state = made.log(store).load().state
    updates = changes(store, state, after=-1).to_pylist() if state.seal else []
    shape = [(batch.description, batch.level, batch.rows, batch.digest) for batch in state.trace]
    files = [(e.path, e.status, e.rows) for e in ledger.entries(store, state.ledger)]
    frontiers = (state.seal, state.requested_seal, state.since, state.ingested, state.certified_upper, state.totals)
    return [updates, shape, files, frontiers, len(state.pending), len(state.quarantined), len(state.certificates)]


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("error", [AlreadyExists, Indeterminate])
def test_lost_acknowledgements_leave_the_same_answers_and_the_same_objects(
    tmp_path, clean, stores: Stores, days: int, envelope, error, monkeypatch
):
    expected, kept = clean[envelope]
    keep(monkeypatch, envelope)
    made = world(tmp_path, envelope, stores())
    made.store = lossy = LostAckStore(made.truth, error)
    run(made, tmp_path, days)
    assert answers(made) == expected
    assert objects(made) == kept
    assert lossy.lost >= made.head.version - 1, "some version was acknowledged"

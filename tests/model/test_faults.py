"""For n = 1, 2, …: the nth call to storage fails, the step is run again, and nothing is lost or counted twice."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from model.script import answers, steps, world
from support.faulty import Fault, FaultyStore, LostAckStore
from support.world import World
from tidemark.model.collection import Envelope
from tidemark.storage.store import AlreadyExists, Indeterminate

pytestmark = pytest.mark.model
ENVELOPES = [Envelope.APPEND, Envelope.UPSERT]
KINDS = {"killed": True, "refused or unanswered": False}


def run(made: World, folder) -> None:
    for step in steps(folder):
        made.run(step)


def objects(made: World) -> Counter[str]:
    """Keys, with the names that writers draw for their files made alike."""
    return Counter(re.sub(r"[0-9a-f]{32}", "#", info.key) for info in made.truth.list(""))


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    def once(envelope: Envelope) -> tuple[list, Counter, int]:
        folder = tmp_path_factory.mktemp(envelope)
        made = world(folder, envelope)
        made.store = counting = FaultyStore(made.truth)
        run(made, folder)
        return answers(made), objects(made), counting.calls

    return {envelope: once(envelope) for envelope in ENVELOPES}


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("kind", KINDS)
def test_any_single_fault_then_the_step_again_changes_nothing(tmp_path, clean, envelope, after, kind):
    expected, _, calls = clean[envelope]
    fired = []
    # Later calls are those of longer states, not other ones: every call of the first day, then every third.
    for nth in [n for n in range(1, calls + 20) if n < 60 or n % 3 == 0]:
        folder = tmp_path / str(nth)
        made = world(folder, envelope)
        made.store = faulty = FaultyStore(made.truth, Fault(nth, after, KINDS[kind]))
        run(made, folder)
        assert answers(made) == expected, f"fault at call {nth}: {faulty.fired}"
        if faulty.fired is None:
            break
        fired.append(faulty.fired.split("/")[0])
    assert {"create versions", "create ledger", "create data", "close_output data", "read versions"} <= set(fired)
    assert len(fired) > calls // 3


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("error", [AlreadyExists, Indeterminate])
def test_lost_acknowledgements_leave_the_same_answers_and_the_same_objects(tmp_path, clean, envelope, error):
    expected, kept, _ = clean[envelope]
    made = world(tmp_path, envelope)
    made.store = lossy = LostAckStore(made.truth, error)
    run(made, tmp_path)
    assert answers(made) == expected
    assert objects(made) == kept
    assert lossy.lost > 40

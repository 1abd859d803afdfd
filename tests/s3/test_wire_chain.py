"""Every request of a small scenario meets trouble on the wire once, from ingest to compaction: nothing is lost, nothing
counted twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from simulation.script import answers, steps, world
from simulation.test_faults import restore, so_far
from support.stores import Contents, Stores
from support.trouble import (
    CONFLICT,
    CUT_BODY,
    INTERNAL_ERROR,
    LOST_REPLY,
    LOST_REQUEST,
    SHORT_BODY,
    SLOW_DOWN,
    Proxy,
    Trouble,
)
from support.wire import Message
from support.world import World
from tidemark.model.collection import Envelope
from tidemark.storage import open_store

pytestmark = [pytest.mark.s3, pytest.mark.usefixtures("no_waiting")]

DAYS = 2
ONE_LOOK_IN = 5
WRITES = [LOST_REQUEST, LOST_REPLY, SLOW_DOWN, INTERNAL_ERROR, CONFLICT]
LOOKS = [LOST_REQUEST, LOST_REPLY, SLOW_DOWN, INTERNAL_ERROR, CUT_BODY]


def of(requested: str) -> list[Trouble]:
    """What may become of a request."""
    method, _, path = requested.partition(" ")
    if method in ("PUT", "POST"):
        return WRITES
    return [*LOOKS, SHORT_BODY] if path.endswith(".parquet") and method == "GET" else LOOKS


@pytest.fixture
def made(tmp_path: Path, server: str, stores: Stores, wire: Proxy, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose jobs reach the store through the wire, and whose truth is known without it."""
    wire.arm(None)
    truth = stores()
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server)
        truth.list("")
        made = world(tmp_path, Envelope.UPSERT, truth)
    made.store = open_store(truth.url)
    return made


def test_any_request_in_trouble_changes_nothing(made: World, wire: Proxy, tmp_path: Path):
    """Every kind of trouble for every request that writes; one kind by turns for one in five that look."""
    contents = Contents(made.truth)
    troubled: set[str] = set()
    for at, step in enumerate(steps(tmp_path, DAYS)):
        before = contents.take()
        wire.arm(None)
        made.run(step)
        requests, then, expected = wire.requests, contents.take(), so_far(made, contents)
        for nth, request in enumerate(requests, 1):
            troubles = of(request)
            if troubles is not WRITES:
                turn, left = divmod(nth + at, ONE_LOOK_IN)
                troubles = [] if left else [troubles[turn % len(troubles)]]
            for trouble in troubles:
                restore(made, contents, before)
                wire.arm_nth(nth, trouble)
                made.run(step)
                assert wire.troubled, f"step {at} asks for less the second time"
                troubled.update(wire.troubled)
                assert so_far(made, contents) == expected, f"step {at}, request {nth}: {wire.troubled}"
        wire.arm(None)
        restore(made, contents, then)
    kinds = {(name.split(" ")[0], name.partition(": ")[2]) for name in troubled}
    assert {("PUT", str(trouble)) for trouble in WRITES} <= kinds
    assert {("GET", str(trouble)) for trouble in LOOKS} <= kinds


@pytest.mark.parametrize("seed", range(3))
def test_a_wire_that_is_seldom_well_changes_nothing(
    made: World, wire: Proxy, tmp_path: Path, stores: Stores, seed: int
):
    """One request in eight meets trouble, also those that are made because of it."""
    chance = random.Random(seed)

    def script(request: Message) -> Trouble | None:
        return chance.choice(of(wire.requests[-1])) if chance.random() < 1 / 8 else None

    clean = world(tmp_path, Envelope.UPSERT, stores())
    for step in steps(tmp_path):
        clean.run(step)
    wire.arm(script)
    for step in steps(tmp_path):
        made.run(step)
    wire.arm(None)
    assert answers(made) == answers(clean)

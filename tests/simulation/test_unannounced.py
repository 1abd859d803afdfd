"""A first attempt is announced by nothing, and gives way to any that is."""

from __future__ import annotations

import pytest

from support.world import World, certify, collection, interval
from tidemark.errors import Fenced
from tidemark.jobs.job import Job
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Drained
from tidemark.model.collection import Gate
from tidemark.model.transition import FencedOff, overtaken
from tidemark.storage.log.log import StateLog

pytestmark = pytest.mark.simulation

ROWS = [{"k": 1, "v": "a", "t": 3, "e": 3}]


@pytest.fixture
def world(tmp_path) -> World:
    made = World(tmp_path, collection())
    made.land(0, "a", ROWS)
    return made


def kinds(world: World) -> list[str]:
    return [record.change.kind for record in world.log().history()][::-1]


def sealed(world: World) -> None:
    world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(0)))
    certify(world.job(), Gate.FRONTIER)


def slow(world: World, meanwhile) -> Job:
    """A first attempt while whose commit is on its way others go on."""

    class Slow(StateLog):
        def commit(self, base, change):
            if isinstance(change, Drained):
                meanwhile()
            return super().commit(base, change)

    return world.job(log=Slow(world.truth, world.new_id, monotonic=world.clock, pause=world.clock.pause), first=True)


def test_a_day_whose_tasks_succeed_at_once_commits_no_attempt(world: World) -> None:
    sealed(world)
    world.run(lambda job: drain(job, interval(0)))
    assert kinds(world) == ["created", "ingested", "certified", "sealed", "certified", "drained"]


def test_a_try_again_is_announced(world: World) -> None:
    world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)), first=False)
    assert kinds(world) == ["created", "attempted", "ingested"]


@pytest.mark.parametrize("ended", [False, True], ids=["has begun", "has finished"])
def test_a_first_attempt_gives_way_to_a_newer_one_that(world: World, ended: bool) -> None:
    sealed(world)

    def newer() -> None:
        if ended:
            drain(world.job(first=False), interval(0))
        else:
            world.job(first=False).fenced(world.head, "drain", interval(0))

    with pytest.raises(Fenced, match="was overtaken by"):
        drain(slow(world, newer), interval(0))
    assert kinds(world).count("drained") == ended


def test_of_two_first_attempts_of_different_runs_one_commits_and_the_other_finds_nothing_to_do(world: World) -> None:
    sealed(world)
    done = []

    def other() -> None:
        if not done:
            done.append(drain(world.job(first=True), interval(0)))

    assert drain(slow(world, other), interval(0))["outcome"] == "nothing to do"
    assert done[0]["outcome"] == "applied"
    assert kinds(world).count("drained") == 1


def test_a_first_attempt_that_finds_an_attempt_takes_over_from_it(world: World) -> None:
    job = world.job(first=False)
    job.fenced(job.log.load(), "ingest", interval(0))
    world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)), first=True)
    assert kinds(world) == ["created", "attempted", "attempted", "ingested"]
    assert world.state.fences == ()


def test_only_an_attempt_at_the_same_step_of_the_same_interval_overtakes() -> None:
    def attempt(step: str, day: int, token: str) -> Attempted:
        return Attempted(Fence(step, interval(day), token))

    class Mine:
        fence = Fence("drain", interval(0), "mine", unannounced=True)

    def outcome(theirs: Attempted) -> object:
        return overtaken(Mine(), theirs)  # type: ignore[arg-type]

    assert isinstance(outcome(attempt("drain", 0, "theirs")), FencedOff)
    assert outcome(attempt("drain", 0, "mine")) is None
    assert outcome(attempt("drain", 1, "theirs")) is None
    assert outcome(attempt("ingest", 0, "theirs")) is None

"""A person certifies what an expectation refused: what is named, and is a judgement of data, for a reason."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.quality.support import DAY, World, collection, update
from tidemark.errors import GateFailed, InvalidUsage
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.change import Redefined
from tidemark.model.collection import Gate

pytestmark = pytest.mark.quality

STATUS = {"expect_column_values_to_be_in_set": {"column": "status", "value_set": ["new", "paid"]}}
AMOUNT = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 5}}
WHY = "a strike on that day"


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))


def accept(world: World, batch: str, reason: str = WHY, **more: Any) -> dict[str, Any]:
    return gate(world.job(), Gate.UNSEALED, accept=batch, reason=reason, by="ada", **more)


def failed() -> tuple[World, str]:
    """A collection with a batch that its gate refused."""
    world = World(collection(quality=[STATUS]))
    batch = world.ingest(1, [update(1, time=DAY, status="bogus"), update(2, time=DAY)])
    with pytest.raises(GateFailed):
        gate(world.job(), Gate.UNSEALED)
    return world, batch.id


def test_it_is_certified_and_who_why_and_what_failed_is_kept() -> None:
    world, batch = failed()
    result = accept(world, batch)
    assert (result["outcome"], result["batches"]) == ("applied", [batch])
    (kept,) = world.state.accepted
    assert world.state.is_certified(world.state.unsealed[0])
    assert (kept.batch, kept.by, kept.reason, kept.expectations) == (batch, "ada", WHY, 1)
    assert [(one.rule, one.failing) for one in kept.failures] == [("expect_column_values_to_be_in_set(status)", 1)]
    assert kept.words in result["accepted"][0]
    assert kept.words in next(world.log.history()).change.words


def test_again_it_changes_nothing_and_keeps_the_first_reason() -> None:
    world, batch = failed()
    accept(world, batch)
    before = world.state
    assert accept(world, batch, "another reason, later")["outcome"] == "nothing to do"
    assert world.state == before


def test_it_is_kept_when_the_batch_is_gone() -> None:
    world, batch = failed()
    accept(world, batch)
    accepted = world.state.accepted
    quarantine(world.job(), batch)
    assert (world.state.certificates, world.state.accepted) == ((), accepted)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("", "has 0 characters, at least 10"),
        ("  it  is\n ok ", "has 8 characters, at least 10"),
        ("x" * 301, "has 301 characters, at most 300"),
    ],
)
def test_a_reason_says_something_and_is_short(reason: str, said: str) -> None:
    world, batch = failed()
    with pytest.raises(InvalidUsage, match=said):
        accept(world, batch, reason)
    assert world.state.accepted == ()


def test_a_reason_is_one_line() -> None:
    world, batch = failed()
    accept(world, batch, "a strike\n on that \x1b[31mday")
    assert world.state.accepted[0].reason == r"a strike on that \x1b[31mday"


def test_only_what_is_named_is_accepted() -> None:
    world, batch = failed()
    other = world.ingest(2, [update(3, time=2 * DAY, status="bogus")])
    with pytest.raises(GateFailed, match=other.id):
        accept(world, batch)
    assert [one.batch for one in world.state.accepted] == [batch]


def test_what_passes_needs_no_acceptance() -> None:
    world = World(collection(quality=[STATUS]))
    batch = world.ingest(1, [update(1, time=DAY)])
    assert accept(world, batch.id)["outcome"] == "applied"
    assert world.state.accepted == ()


def test_what_is_stored_wrongly_is_accepted_by_nobody() -> None:
    world = World(collection(quality=[STATUS]))
    batch = world.ingest(1, [update(1, time=DAY, status="bogus")], rows=7)
    with pytest.raises(InvalidUsage, match=r"cannot be accepted: `rows as recorded` is no expectation"):
        accept(world, batch.id)
    assert (world.state.accepted, world.state.certificates) == ((), ())


def test_no_other_gate_takes_it() -> None:
    world, batch = failed()
    with pytest.raises(InvalidUsage, match="what the trace gate checks are invariants"):
        gate(world.job(), Gate.TRACE, accept=batch, reason=WHY, by="ada")


def test_a_batch_that_is_not_there_is_refused_with_those_that_are() -> None:
    world, batch = failed()
    with pytest.raises(InvalidUsage, match=f"begins with 'nobody'; there are: {batch}"):
        accept(world, "nobody")


def test_rules_that_changed_since_are_judged_again_first() -> None:
    world, batch = failed()
    suite = world.state.collection.suite(Gate.UNSEALED)
    world.commit(Redefined(collection(quality=[STATUS, AMOUNT])))
    with pytest.raises(InvalidUsage, match=f"the rules have changed from {suite} to "):
        accept(world, batch, judged_by=suite)
    accept(world, batch)
    world.commit(Redefined(collection(quality=[STATUS])))
    assert not world.state.is_certified(world.state.unsealed[0]), "an acceptance is of the rules it was given under"


def test_a_correction_of_more_than_its_share_is_the_owners_judgement_and_may_be_accepted() -> None:
    from tidemark.quality.suites import UNSEALED

    assert [rule.name for rule in UNSEALED if rule.judgement] == ["corrected share"]


def test_a_failure_says_what_failed_as_far_as_a_line_may_hold_and_survives_pickling() -> None:
    world = World(collection(quality=[STATUS, AMOUNT]))
    batch = world.ingest(1, [update(key, time=DAY, status="bogus" * 1000) for key in range(50)])
    with pytest.raises(GateFailed) as raised:
        gate(world.job(), Gate.UNSEALED)
    details = pickle.loads(pickle.dumps(raised.value)).details
    assert (details["batches"], details["acceptable"], details["more"]) == ([batch.id], True, 0)
    first, second = details["failed"]
    assert (first["failing"], len(first["rows"]), len(first["rows"][0]["status"]) <= 60) == (50, 5, True)
    assert (second["rule"], second["failing"]) == ("expect_column_values_to_be_between(amount)", 50)
    assert len(str(details)) < 10_000

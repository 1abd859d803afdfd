"""Sixteen processes that commit at once, round after round, on a file system; and some of them killed while they do."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.budget import budget
from support.crowd import WRITERS, crowd, nothing_lost_or_repeated
from support.world import collection
from tidemark.jobs.job import fresh_id
from tidemark.model.change import Created
from tidemark.storage.log.log import StateLog
from tidemark.storage.stores.local import LocalStore

pytestmark = [pytest.mark.simulation, pytest.mark.measured, pytest.mark.timeout(600)]

ROUNDS, ROUNDS_WITH_KILLS = budget(ci=(90, 40), deep=(1000, 400))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where a new collection is."""
    log = StateLog(LocalStore(str(tmp_path)), fresh_id)
    log.commit(log.load(), Created(collection()))
    return str(tmp_path)


def test_rounds_of_sixteen_processes_lose_and_repeat_nothing(url: str):
    tally = crowd(url, ROUNDS)
    assert len(tally.acknowledged) == ROUNDS * WRITERS
    assert tally.creates > len(tally.acknowledged), "nobody lost a race: the writers were never at it at once"
    nothing_lost_or_repeated(url, tally)


def test_killed_writers_lose_and_repeat_nothing(url: str):
    tally = crowd(url, ROUNDS_WITH_KILLS, chance=random.Random(1))
    assert tally.kills == ROUNDS_WITH_KILLS // 2
    assert tally.died > 1, "all but one of the killed writers had answered: nothing was tested"
    nothing_lost_or_repeated(url, tally)

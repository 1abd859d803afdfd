"""Sixteen processes that commit at once, round after round, on S3; and some of them killed while they do."""

from __future__ import annotations

import random

import pytest

from benchmarks.contention import contention, figures
from support.budget import budget
from support.crowd import WRITERS, crowd, nothing_lost_or_repeated
from support.stores import Stores
from support.world import collection
from tidemark.jobs.job import fresh_id
from tidemark.model.change import Created
from tidemark.storage.log.log import StateLog

pytestmark = [pytest.mark.s3, pytest.mark.measured, pytest.mark.timeout(budget(ci=600, deep=3600))]

ROUNDS, ROUNDS_WITH_KILLS = budget(ci=(15, 6), deep=(150, 30))


@pytest.fixture
def url(stores: Stores) -> str:
    """Where a new collection is."""
    store = stores()
    log = StateLog(store, fresh_id)
    log.commit(log.load(), Created(collection()))
    return store.url


def test_rounds_of_sixteen_processes_lose_and_repeat_nothing(url: str):
    tally = crowd(url, ROUNDS)
    assert len(tally.acknowledged) == ROUNDS * WRITERS
    assert tally.creates > len(tally.acknowledged), "nobody lost a race: the writers were never at it at once"
    nothing_lost_or_repeated(url, tally)


def test_killed_writers_lose_and_repeat_nothing(url: str):
    tally = crowd(url, ROUNDS_WITH_KILLS, chance=random.Random(1))
    assert tally.kills == ROUNDS_WITH_KILLS // 2
    nothing_lost_or_repeated(url, tally)


def test_the_benchmark_answers_for_both_kinds_of_store():
    """It checks its own answers: a change that is lost or repeated ends it."""
    results = contention(2, lambda text: None)
    assert [(found["where"], found["commits"]) for found in results] == [("local files", 32), ("S3", 32)]
    assert len(figures(results).rows) == 2

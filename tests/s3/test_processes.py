"""Sixteen processes that commit at once, a hundred times, on S3; and some of them killed while they do."""

from __future__ import annotations

import random

import pytest

from support.crowd import WRITERS, crowd, nothing_lost_or_repeated
from support.stores import Stores
from support.world import collection
from tidemark.jobs.job import fresh_id
from tidemark.model.change import Created
from tidemark.storage.log import StateLog

pytestmark = [pytest.mark.s3, pytest.mark.timeout(600)]


@pytest.fixture
def url(stores: Stores) -> str:
    """Where a new collection is."""
    store = stores()
    log = StateLog(store, fresh_id)
    log.commit(log.load(), Created(collection()))
    return store.url


def test_a_hundred_rounds_of_sixteen_processes_lose_and_repeat_nothing(url: str):
    tally = crowd(url, 100)
    assert len(tally.acknowledged) == 100 * WRITERS
    assert tally.creates > len(tally.acknowledged), "nobody lost a race: the writers were never at it at once"
    nothing_lost_or_repeated(url, tally)


def test_killed_writers_lose_and_repeat_nothing(url: str):
    tally = crowd(url, 10, chance=random.Random(1))
    assert tally.kills == 5
    nothing_lost_or_repeated(url, tally)

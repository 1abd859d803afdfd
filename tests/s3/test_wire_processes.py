"""Sixteen processes that commit at once over a wire that is seldom well."""

from __future__ import annotations

import random

import pytest

from support.crowd import WRITERS, crowd, nothing_lost_or_repeated
from support.stores import Stores
from support.trouble import CONFLICT, CUT_BODY, INTERNAL_ERROR, LOST_REPLY, LOST_REQUEST, SLOW_DOWN, Proxy, Trouble
from support.wire import Message
from support.world import collection
from tidemark.jobs.job import fresh_id
from tidemark.model.change import Created
from tidemark.storage.log.log import StateLog

pytestmark = [pytest.mark.s3, pytest.mark.timeout(600)]

ROUNDS = 4


def test_lost_replies_in_a_race_lose_and_repeat_nothing(wire: Proxy, stores: Stores):
    """One create in ten is answered wrongly or not at all, one read in fifty."""
    store, chance = stores(), random.Random(1)
    log = StateLog(store, fresh_id)
    log.commit(log.load(), Created(collection()))

    def script(request: Message) -> Trouble | None:
        if request.method == "PUT":
            kinds = [LOST_REQUEST, LOST_REPLY, SLOW_DOWN, INTERNAL_ERROR, CONFLICT]
            return chance.choice(kinds) if chance.random() < 1 / 10 else None
        return chance.choice([LOST_REPLY, CUT_BODY]) if chance.random() < 1 / 50 else None

    wire.arm(script)
    tally = crowd(store.url, ROUNDS)
    troubled = wire.troubled
    wire.arm(None)
    assert any(entry.startswith("PUT") and entry.endswith(str(LOST_REPLY)) for entry in troubled)
    assert len(tally.acknowledged) == ROUNDS * WRITERS
    nothing_lost_or_repeated(store.url, tally)

"""Plans of the collector: each number once, whoever else writes one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.faulty import LostAckStore
from tidemark.errors import Corruption
from tidemark.plan.collect import Garbage, GarbagePlan, Why
from tidemark.storage.log import plans
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate

PLAN = GarbagePlan(7, 40, 32, (), (Garbage("data/ü\n/x", 2**60, Why.UNNAMED, 3, "token"),), 5, ((3, 2**60),))


def test_what_was_saved_is_loaded():
    store = MemoryStore()
    plans.save(store, PLAN)
    assert [info.key for info in plans.listed(store)] == ["collect/00000007.json"]
    assert plans.load(store, plans.key_of(7)) == PLAN
    assert plans.versions_below(store) == 32


def test_without_plans_no_version_was_ever_to_go():
    assert plans.versions_below(MemoryStore()) == 0


@pytest.mark.parametrize("error", [AlreadyExists, Indeterminate])
def test_a_lost_reply_is_found_to_be_one_s_own_and_another_s_plan_is_not(error: type[Exception]):
    store = MemoryStore()
    plans.save(LostAckStore(store, error), PLAN)
    plans.save(LostAckStore(store, error), PLAN)
    with pytest.raises(AlreadyExists):
        plans.save(LostAckStore(store, error), replace(PLAN, version=41))
    assert plans.load(store, plans.key_of(7)) == PLAN


def test_a_plan_that_did_not_land_is_written_again():
    class Silent(LostAckStore):
        def create(self, key, data):
            if not self.lost:
                self.lost += 1
                raise Indeterminate(key)
            self.inner.create(key, data)

    store = MemoryStore()
    plans.save(Silent(store), PLAN)
    assert plans.load(store, plans.key_of(7)) == PLAN


def test_a_damaged_plan_is_corruption():
    store = MemoryStore()
    plans.save(store, PLAN)
    key = plans.key_of(7)
    store.objects[key] = store.objects[key].replace(b'"since":3', b'"since":1')
    with pytest.raises(Corruption, match=key):
        plans.load(store, key)

"""Any call of an `init` fails once, while it asks the store or commits: the next one creates the collection, once."""

from __future__ import annotations

import pytest

from support.faulty import Died, Fault, FaultyStore
from support.inprocess import InProcessRunner
from support.world import collection
from tidemark.errors import TidemarkError
from tidemark.jobs.job import Job, fresh_id
from tidemark.jobs.steps.init import declare_collection
from tidemark.storage.log.log import StateLog
from tidemark.storage.probe.certificate import key_of
from tidemark.storage.probe.probe import FOLDER
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import Indeterminate

pytestmark = pytest.mark.simulation
VERSION = "versions/00000000/000000000001.json"


def init(store: FaultyStore) -> None:
    log = StateLog(store, fresh_id, pause=lambda seconds: None)
    declare_collection(Job(store, log, lambda: InProcessRunner(store), "attempt"), collection())


def cleaning(store: FaultyStore) -> bool:
    return str(store.fired).split(" ")[0] in ("delete", "keys")


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("dies", [True, False], ids=["killed", "refused or unanswered"])
def test_any_single_fault_of_an_init_is_mended_by_the_next(after: bool, dies: bool):
    nth, failed = 0, []
    while True:
        nth += 1
        store = FaultyStore(MemoryStore(), Fault(nth, after, dies))
        try:
            init(store)
        except (Died, TidemarkError, Indeterminate):
            failed.append(store.fired)
            init(store)
        if store.fired is None:
            break
        # Who is killed while it cleans up cannot.
        kept = [key for key in store.inner.objects if not (dies and cleaning(store) and key.startswith(FOLDER))]
        assert sorted(kept) == [key_of("memory://"), VERSION], store.fired
    assert nth > 40
    assert dies == bool(failed) or set(failed) <= {f"create {key_of('memory://')}"}

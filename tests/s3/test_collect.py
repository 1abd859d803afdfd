"""Collecting on S3: listed by the store's own clock, unfinished uploads given up, nothing else changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.script import answers, steps
from simulation.script import world as world_of_days
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.model.collection import Envelope
from tidemark.plan.collect import Why
from tidemark.storage.log import plans
from tidemark.storage.log.references import References
from tidemark.storage.stores.s3 import S3Store
from tidemark.storage.stores.s3_output import PART_BYTES
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = pytest.mark.s3
ORPHAN = "0" * 31 + "f"


def test_two_phases_and_at_once(store: S3Store, tmp_path: Path):
    made = world_of_days(tmp_path, Envelope.APPEND, store)
    for step in steps(tmp_path):
        made.run(step)
    before = answers(made)
    upload = store.open_output(f"data/{ORPHAN}/{ORPHAN}.parquet")
    upload.__enter__().write(b"1" * (PART_BYTES + 1))
    store.create(f"ledger/{ORPHAN}.json", b"1")
    report = collect(made.job())
    assert {entry.why for entry in report.listed.entries} >= {Why.UNFINISHED, Why.UNNAMED}
    assert report.removed == ()
    assert plans.load(store, str(report.plan)) == report.listed
    report = collect(made.job(), keep=0, graces=AT_ONCE)
    assert {entry.why for entry in report.removed} >= {Why.UNFINISHED, Why.UNNAMED, Why.VERSION}
    assert report.failed == 0
    made.forget()
    assert answers(made) == before
    log = made.log()
    named, oldest = References(store), log.oldest_version()
    assert oldest >= 16
    named.add(log.versions.between(oldest, log.newest_version()))
    stored = {info.key for prefix in ("data/", "ledger/") for info in store.list(prefix)}
    assert stored == named.since(oldest)
    assert list(store.unfinished()) == []
    assert list(verify_history(log)) == []
    assert list(verify_objects(store, log.load().state)) == []

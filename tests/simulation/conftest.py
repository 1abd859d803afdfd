"""The model ring runs on stores in memory and on a file system; tests/s3 runs it on S3."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from simulation.script import DAYS
from support.budget import budget
from support.stores import Stores, stores_in_memory, stores_on_disk
from tidemark.storage.log import log, versions
from tidemark.storage.log.head import Head
from tidemark.storage.log.versions import Version


@pytest.fixture(scope="module", params=["memory", "local"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Makes empty stores."""
    return stores_in_memory() if request.param == "memory" else stores_on_disk(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def days() -> int:
    """How many days of the script are run."""
    return len(DAYS)


@pytest.fixture
def writes() -> int:
    """Of the calls that write, one in so many is made to fail."""
    return 1


@pytest.fixture
def looks() -> int:
    """Of the calls that only look, one in so many is made to fail."""
    return budget(ci=6, deep=1)


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the bytes of a version say, and what comes of it after another, is worked out once in a test. The bytes are
    read each time. Every reader loads the state again, which took a third of the machines' time."""
    monkeypatch.setattr(versions, "_decoded", lru_cache(4096)(versions._decoded))
    folded, known = log._folded, dict[tuple[str, str], Head]()

    def once(head: Head, version: Version, seen_at: float) -> Head:
        chain = head.sha256, version.sha256
        if chain not in known:
            known[chain] = folded(head, version, seen_at)
        return replace(known[chain], seen_at=seen_at)

    monkeypatch.setattr(log, "_folded", once)

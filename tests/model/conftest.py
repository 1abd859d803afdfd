"""The model ring runs on stores in memory and on a file system; tests/s3 runs it on S3."""

from __future__ import annotations

import pytest

from model.script import DAYS
from support.stores import Stores, stores_in_memory, stores_on_disk
from tidemark.storage import parts_table


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
    return 1


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of parts and leaves of the ledger are objects of their own, however little they hold."""
    monkeypatch.setattr(parts_table, "SMALL", 0)

"""The model ring runs on stores in memory and on a file system; tests/s3 runs it on S3."""

from __future__ import annotations

import pytest

from simulation.script import DAYS
from support.budget import budget
from support.stores import Stores, stores_in_memory, stores_on_disk


@pytest.fixture(scope="module", params=["memory", "local"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Makes empty stores."""
    return stores_in_memory() if request.param == "memory" else stores_on_disk(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def days() -> int:
    """How many days of the script are run."""
    return len(DAYS)


@pytest.fixture
def writes(stores: Stores) -> int:
    """Of the calls that write, one in so many is made to fail: all in memory, which a file system is sent, too."""
    return budget(ci=1 if stores is stores_in_memory() else 3, deep=1)


@pytest.fixture
def looks(stores: Stores) -> int:
    """Of the calls that only look, one in so many is made to fail: in memory all, by death and by an answer in turn."""
    return budget(ci=2 if stores is stores_in_memory() else 5, deep=1)

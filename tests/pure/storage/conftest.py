"""What is stored is tested on stores in memory and on a file system; tests/s3 runs the same on S3."""

from __future__ import annotations

import pytest

from support.stores import Stores, stores_in_memory, stores_on_disk


@pytest.fixture(params=["memory", "local"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Makes empty stores."""
    return stores_in_memory() if request.param == "memory" else stores_on_disk(tmp_path_factory.mktemp("stores"))

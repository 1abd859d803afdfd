"""One Airflow for all tests of this folder: to make one, start it and end it costs more than most tests do.

Each test brings collections of its own. They run in the order of their files, and test_people.py after
test_components.py: an Airflow all of whose components were killed once works on as before.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.instance import Airflow, running


@pytest.fixture(scope="session")
def airflow() -> Iterator[Airflow]:
    with running() as instance:
        yield instance

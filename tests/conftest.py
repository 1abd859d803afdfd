"""No test may touch the deployment it was started from: `make test` runs in the environment of the local Airflow.

Nor may one leave anything in the system's temporary folder: a session in which one did has failed, and names it.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support import airflow_home, scratch

pytest_plugins = ["tests.support.measured"]

# No property holds by the clock: on a machine that is busy with something else one example may take a second.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

DEPLOYMENT = (
    *("TIDEMARK_ROOT", "TIDEMARK_LANDING", "TIDEMARK_LANDINGS", "TIDEMARK_COLLECTIONS", "TIDEMARK_DOCS"),
    "TIDEMARK_DEFINITIONS",
    *("TIDEMARK_LAUNCHER", "TIDEMARK_SPARK_MASTER", "TIDEMARK_SPARK_WHEN", "TIDEMARK_SMALL_MEMORY"),
)

for name in [*DEPLOYMENT, *(name for name in os.environ if name.startswith(("AIRFLOW__", "AIRFLOW_CONN_")))]:
    os.environ.pop(name, None)

scratch.settle()
# Before anything imports airflow, which reads its environment once.
airflow_home.settle()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and scratch.leftovers():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        scratch.keep()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        terminalreporter.write_line(f"what the failed tests have written is in {scratch.SCRATCH}")
    if left := scratch.leftovers():
        terminalreporter.write_line(f"tests left in {scratch.SCRATCH}: {', '.join(left)}", red=True)


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of parts and leaves of the ledger are objects of their own, however little they hold."""
    monkeypatch.setattr("tidemark.storage.sidecars.parts_table.SMALL", 0)


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    """A test does not see what one before it has read: tests count bytes, and damage objects."""
    from tidemark.storage.cache import DEFAULT, OF_PROCESS

    OF_PROCESS.clear()
    OF_PROCESS.resize(DEFAULT)  # the last read may have been given another size

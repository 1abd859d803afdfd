"""Tests that measure, marked `measured`: each is judged on the better of two tries, and both are printed.

A plugin of pytest. Whatever else the machine does adds to what a test measures and never takes from it, so the better
of two tries says more. A test that passes is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from _pytest.runner import runtestprotocol

TRIES = 2


@dataclass
class Measure:
    """What one try of a test has measured, in words."""

    notes: list[str] = field(default_factory=list)

    def below(self, what: str, value: float, bound: float, unit: str) -> None:
        """Note a value, which must be below a bound."""
        self.notes.append(f"{what} {value:,.1f} {unit}, must be below {bound:,.1f} {unit}")
        assert value < bound, self.notes[-1]


_MEASURE = pytest.StashKey[Measure]()
_LINES = pytest.StashKey[list[str]]()


@pytest.fixture
def measure(request: pytest.FixtureRequest) -> Measure:
    """Notes what this try measures, and holds it to its bound."""
    return request.node.stash.setdefault(_MEASURE, Measure())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Try a test that measures up to twice, and report the last try."""
    if item.get_closest_marker("measured") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    said, earlier = item.config.stash.setdefault(_LINES, []), ""
    for number in range(1, TRIES + 1):
        item.stash[_MEASURE] = Measure()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = [report for report in reports if report.failed]
        said.append(f"{item.nodeid}, try {number}: {'; '.join(_account(item, reports, failed))}")
        if not failed or number == TRIES:
            break
        earlier = "\n".join(report.longreprtext for report in failed)
        try:
            _start_over(item)
        except Exception as error:
            said.append(f"{item.nodeid} has no second try, as a fixture could not end: {error!r}")
            break
    for report in reports:
        if report in failed and number == TRIES:
            report.sections.append(("the first try", earlier))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _account(item: pytest.Item, reports: list[pytest.TestReport], failed: list[pytest.TestReport]) -> Iterator[str]:
    yield "failed" if failed else "skipped" if any(report.skipped for report in reports) else "passed"
    yield from item.stash[_MEASURE].notes
    yield f"took {sum(report.duration for report in reports):.1f} s"
    for report in failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        yield (crash.message if crash else report.longreprtext).splitlines()[0]


def _start_over(item: pytest.Item) -> None:
    """Nothing of a failed try reaches the next: every fixture is made again, and the time limit begins again, which
    pytest-timeout sets once for all tries."""
    item.session._setupstate.teardown_exact(None)
    plugin = item.config.pluginmanager.getplugin("timeout")
    if plugin is None:
        return
    settings = plugin._get_item_settings(item)
    if settings.timeout and settings.timeout > 0 and settings.func_only is False:
        item.ihook.pytest_timeout_cancel_timer(item=item)
        item.ihook.pytest_timeout_set_timer(item=item, settings=settings)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if said := config.stash.get(_LINES, []):
        terminalreporter.write_sep("=", "what was measured")
        for line in said:
            terminalreporter.write_line(line)

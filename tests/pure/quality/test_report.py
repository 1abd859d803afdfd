"""What a gate's report says to programs and to people."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tidemark.model.collection import Gate
from tidemark.quality.report import GateReport, RuleResult, rendered

pytestmark = pytest.mark.pure

GOOD = RuleResult("sorted", "critical", "b1", True)
BAD = RuleResult("no null keys", "critical", "b2" * 16, False, "null in the key", 3, ({"id": None, "n": "[red]1"},))
WORRYING = RuleResult("volume", "warning", "b1", False, "brought 1 rows")


def report(*results: RuleResult, docs: str | None = None) -> GateReport:
    return GateReport("orders", Gate.UNSEALED, "unsealed-1", ("b1", "b2" * 16), results, docs)


def shown(of: GateReport) -> str:
    out = StringIO()
    Console(file=out, width=120, color_system=None).print(rendered(of))
    return out.getvalue()


def test_a_warning_alone_passes() -> None:
    assert report(GOOD, WORRYING).passed
    assert not report(GOOD, BAD).passed


def test_batches_without_a_failure_are_certified_for() -> None:
    assert report(GOOD, BAD, WORRYING).certified == ("b1",)


def test_the_headline_names_batch_rule_finding_page_and_way_out() -> None:
    assert report(GOOD, BAD, BAD, docs="/docs/index.html").headline == (
        "unsealed gate of orders: no null keys of batch b2b2b2b2b2b2: null in the key (and 1 more); "
        "see /docs/index.html; `tidemark quarantine orders b2b2b2b2b2b2`, mend the file, run again"
    )


def test_people_see_rule_finding_and_rows_as_they_are() -> None:
    text = shown(report(GOOD, BAD, WORRYING, docs="/docs/index.html"))
    for part in ("failed", "no null keys", "1 of 3 rows", "null", "[red]1", "brought 1 rows", "/docs/index.html"):
        assert part in text
    assert shown(report(GOOD)) == "unsealed gate of orders passed: 1 checks, unsealed-1\n"


def test_what_was_not_asked_is_no_check_that_passed() -> None:
    some = report(GOOD, replace(GOOD, not_asked=True))
    assert (some.passed, some.summary()["rules"], some.summary()["not_asked"]) == (True, 1, 1)
    assert shown(some) == "unsealed gate of orders passed: 1 checks (1 not asked), unsealed-1\n"


def test_a_failure_that_can_be_accepted_says_how_unless_another_of_its_batch_cannot() -> None:
    judged = replace(BAD, acceptable=True)
    accept = "; or accept it: `tidemark gate orders unsealed --accept b2b2b2b2b2b2 --reason TEXT`"
    assert report(judged).headline.endswith(accept)
    assert accept not in report(judged, BAD).headline

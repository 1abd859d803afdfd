"""The tests that took longest, from the reports that pytest writes as XML (JUnit's form)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

Timed = tuple[float, str]
"""Seconds, with what a test sets up and takes down; and which test."""


def slowest(reports: Iterable[Path], most: int) -> list[Timed]:
    """At most so many tests of some reports, the slowest first."""
    found = [timed for report in reports for timed in _times(report)]
    return sorted(found, key=lambda timed: (-timed[0], timed[1]))[:most]


def _times(report: Path) -> list[Timed]:
    cases = ElementTree.parse(report).iter("testcase")
    return [(float(case.get("time", "0")), f"{case.get('classname')}::{case.get('name')}") for case in cases]

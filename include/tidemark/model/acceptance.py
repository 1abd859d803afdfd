"""A batch that a person accepted although expectations of its owner failed: who, when, why, and which."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemark.errors import InvalidUsage, plain_line, shortened
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.wording import SHORT_ID, counted

LEAST_REASON, MOST_REASON = 10, 300
"""Characters of a reason: fewer explain nothing to who reads it next year, and it is kept for ever."""
MOST_NAME = 100
"""Characters kept of who accepted, and of an expectation's name."""
MOST_FAILURES = 20
"""Failed expectations that an acceptance names; how many there were in all is `expectations`."""


@dataclass(frozen=True)
class AcceptedFailure:
    """An expectation that failed, and how many rows failed it (None: it is not about rows)."""

    rule: str
    failing: int | None = None

    def __str__(self) -> str:
        return self.rule if self.failing is None else f"{self.rule}, {counted(self.failing, 'row')}"


@dataclass(frozen=True)
class Acceptance:
    """A batch of an interval was accepted under a suite by a person, at wall-clock microseconds, for a reason.

    `failures` are the first MOST_FAILURES of the `expectations` that had failed.
    """

    batch: str
    interval: Interval
    suite: str
    by: str
    at: int
    reason: str
    expectations: int
    failures: tuple[AcceptedFailure, ...]

    def in_zone(self, zone: str) -> Acceptance:
        """The same, its interval shown as clocks in a zone show it."""
        return replace(self, interval=self.interval.in_zone(zone))

    @property
    def words(self) -> str:
        """One line: which batch, by whom, when, why, and what had failed."""
        first = "; ".join(map(str, self.failures))
        left = self.expectations - len(self.failures)
        more = f" and {left:,} more" if left > 0 else ""
        return (
            f"{self.batch[:SHORT_ID]} of {self.interval} accepted by {self.by} at {format_instant(self.at)}: "
            f"{self.reason} (failed: {first}{more})"
        )


def checked_reason(text: str | None) -> str:
    """The reason as one line. InvalidUsage for one of fewer than LEAST_REASON or more than MOST_REASON characters."""
    reason = " ".join((text or "").split())
    if len(reason) < LEAST_REASON:
        raise InvalidUsage(
            f"the reason has {counted(len(reason), 'character')}, at least {LEAST_REASON} are needed: say why the data "
            "are right, or may stay wrong"
        )
    if len(reason) > MOST_REASON:
        raise InvalidUsage(f"the reason has {len(reason):,} characters, at most {MOST_REASON} are kept: say it shorter")
    return plain_line(reason, MOST_REASON)


def name_of_person(text: str | None) -> str:
    """Who accepts, as one short line. InvalidUsage where nobody is named."""
    name = " ".join((text or "").split())
    if not name:
        raise InvalidUsage("nobody is named who accepts: give --by NAME")
    return shortened(plain_line(name, MOST_NAME), MOST_NAME)

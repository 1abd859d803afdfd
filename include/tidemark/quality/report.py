"""What a gate found, as a value, as JSON and as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tidemark.errors import shortened
from tidemark.model.acceptance import Acceptance
from tidemark.model.collection import Gate
from tidemark.quality.evidence import Evidence
from tidemark.quality.gates import GATES
from tidemark.quality.suites import CRITICAL

if TYPE_CHECKING:
    from rich.console import RenderableType

SHORT_ID = 12
"""Characters of a batch's id shown to people; commands take any unambiguous beginning."""
MOST_FAILURES, MOST_ROWS, MOST_COLUMNS = 8, 5, 10
"""How much of what failed travels with the failure."""
MESSAGE_LENGTH, VALUE_LENGTH = 400, 60
"""Characters of a finding, and of a value, that do."""


@dataclass(frozen=True)
class RuleResult:
    """One rule's verdict on one batch (`batch` is empty for the frontier).

    `message` says what was found where it failed; `failing` counts the offending rows where the rule is about
    rows; `rows` are some of them, as found again in the data. `asked` is the expectation with its arguments,
    `observed` what there was to see, whether it passed or not. A failure is `acceptable` if it is a judgement of the
    collection's owner about data; a broken invariant of what is stored is not. What was `not_asked` has passed, and
    `observed` says why.
    """

    rule: str
    severity: str
    batch: str
    passed: bool
    message: str = ""
    failing: int | None = None
    rows: tuple[dict[str, Any], ...] = ()
    asked: str = ""
    observed: str = ""
    acceptable: bool = False
    not_asked: bool = False


@dataclass(frozen=True)
class GateReport:
    """A gate run: every rule over every batch (for the frontier: over the state, up to `upper`). `docs` is where it
    was kept. Batches that a person `accepted` stop nothing, whatever failed. `evidence` are the figures that the
    built-in rules were judged by, of batches with rows and of full snapshots without, kept to be judged again."""

    collection: str
    gate: Gate
    suite: str
    batches: tuple[str, ...]
    results: tuple[RuleResult, ...]
    docs: str | None = None
    upper: int | None = None
    accepted: tuple[Acceptance, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def failures(self) -> tuple[RuleResult, ...]:
        """What stops the run."""
        accepted = {one.batch for one in self.accepted}
        return tuple(
            result
            for result in self.results
            if not result.passed and result.severity == CRITICAL and result.batch not in accepted
        )

    @property
    def warnings(self) -> tuple[RuleResult, ...]:
        """What is worth a look and stops nothing."""
        return tuple(result for result in self.results if not result.passed and result.severity != CRITICAL)

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def not_asked(self) -> int:
        """How many expectations were not asked, as there was nothing, or not all of it, to ask them of."""
        return sum(result.not_asked for result in self.results)

    @property
    def asked(self) -> int:
        """How many checks were made."""
        return len(self.results) - self.not_asked

    @property
    def certified(self) -> tuple[str, ...]:
        """The batches without a failure: they are good whatever became of the others."""
        failed = {result.batch for result in self.failures}
        return tuple(batch for batch in self.batches if batch not in failed)

    @property
    def headline(self) -> str:
        """The first failure in one line: batch, rule, what was found, where to look, the way out."""
        first = self.failures[0]
        about = f" of batch {first.batch[:SHORT_ID]}" if first.batch else ""
        more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        page = f"; see {self.docs}" if self.docs else ""
        way_out = GATES[self.gate].out(self.collection, first.batch[:SHORT_ID], rule=first.rule)
        if all(failure.acceptable for failure in self.failures if failure.batch == first.batch):
            accept = f"--accept {first.batch[:SHORT_ID]} --reason TEXT"
            way_out += f"; or accept it: `tidemark gate {self.collection} {self.gate} {accept}`"
        return f"{self.gate} gate of {self.collection}: {first.rule}{about}: {first.message}{more}{page}; {way_out}"

    def with_docs(self, page: str | None) -> GateReport:
        return replace(self, docs=page)

    def as_dict(self) -> dict[str, Any]:
        """JSON values: everything, rows included."""
        accepted = [one.words for one in self.accepted]
        evidence = [one.as_dict() for one in self.evidence]
        own = {"gate": str(self.gate), "passed": self.passed, "accepted": accepted, "evidence": evidence}
        return asdict(replace(self, evidence=())) | own

    def summary(self) -> dict[str, Any]:
        """JSON values for a step's one-line result: warnings by rule and message, no rows."""
        warnings = [{"rule": result.rule, "batch": result.batch, "message": result.message} for result in self.warnings]
        accepted = [one.words for one in self.accepted]
        extra: dict[str, Any] = {"accepted": accepted} if accepted else {}
        extra |= {"not_asked": self.not_asked} if self.not_asked else {}
        return {"rules": self.asked, "warnings": warnings, **extra, "docs": self.docs}

    def of_failures(self) -> dict[str, Any]:
        """JSON values that travel with the failure, bounded: what failed, with some of the rows, for who is asked what
        shall become of it."""
        return {
            "suite": self.suite,
            "batches": list(dict.fromkeys(result.batch for result in self.failures)),
            "acceptable": all(result.acceptable for result in self.failures),
            "failed": [_failure_entry(result) for result in self.failures[:MOST_FAILURES]],
            "more": max(0, len(self.failures) - MOST_FAILURES),
            "docs": self.docs,
        }


def _failure_entry(result: RuleResult) -> dict[str, Any]:
    """A failure without more of it than a person reads."""
    rows = [
        {name: shortened(_text(value), VALUE_LENGTH) for name, value in list(row.items())[:MOST_COLUMNS]}
        for row in result.rows[:MOST_ROWS]
    ]
    message = shortened(result.message, MESSAGE_LENGTH)
    entry = {"batch": result.batch, "rule": result.rule, "message": message, "failing": result.failing}
    return {**entry, "acceptable": result.acceptable, "rows": rows}


def rendered(report: GateReport) -> RenderableType:
    """The failures and warnings as tables for a terminal or a task log; one line where there are none."""
    from rich.console import Group
    from rich.text import Text

    verdict = "passed" if report.passed else "failed"
    unasked = f" ({report.not_asked} not asked)" if report.not_asked else ""
    title = Text(f"{report.gate} gate of {report.collection} {verdict}: {report.asked} checks{unasked}, {report.suite}")
    findings = (*report.failures, *report.warnings)
    if not findings:
        return title
    lines = [(found.severity, found.batch[:SHORT_ID], found.rule, found.message) for found in findings]
    shown: list[RenderableType] = [title, _table(("severity", "batch", "rule", "found"), lines)]
    for found in findings:
        if found.rows:
            of_all = f" of {found.failing}" if found.failing else ""
            shown.append(Text(f"{found.rule}: {len(found.rows)}{of_all} rows"))
            shown.append(_table(tuple(found.rows[0]), [tuple(map(_text, row.values())) for row in found.rows]))
    if report.docs:
        shown.append(Text(f"result: {report.docs}"))
    return Group(*shown)


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> RenderableType:
    """A table of texts as they are: what is in brackets is data, not markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _text(value: Any) -> str:
    return "null" if value is None else str(value)

"""Verdicts on rules over evidence and on the owner's expectations over rows: Great Expectations', or its equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from tidemark.model.condition.tree import Condition
from tidemark.quality.compiled import judge
from tidemark.quality.conditions import pandas_mask, spark_column
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.expectations import CATALOGUE, OwnerExpectation
from tidemark.quality.gates import GATES
from tidemark.quality.prepared import Asked, evaluate, is_pandas, make_ready
from tidemark.quality.suites import Rule
from tidemark.quality.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

NO_ROWS = "not asked: there are no rows"
ERROR_LENGTH = 300
"""Characters kept of why an expectation could not be evaluated: Spark's reasons include whole stack traces."""


@dataclass(frozen=True)
class Validator:
    """Judges, or asks Great Expectations. What is kept of expectations is the process's (prepared.py).

    Attributes:
        always_asks: Ask Great Expectations also about evidence that passes every rule.
    """

    always_asks: bool = False

    def prepare(self) -> None:
        """Ask every built-in rule once and have every expectation of the catalogue ready, so that this process and its
        forks judge without delay."""
        for name in CATALOGUE:
            make_ready(name)
        for gate, judgement in GATES.items():
            figures = dict.fromkeys((name for rule in judgement.rules for name in rule.figures), 0)
            Validator(always_asks=True).judge_evidence(judgement.rules, Evidence(gate, (figures,)))

    def judge_evidence(self, rules: Sequence[Rule], evidence: Evidence) -> list[Verdict]:
        """Judge each rule over the evidence, in order; `positions` are rows of the evidence.

        Evidence that passes all rules costs no import of Great Expectations (compiled.py). It is asked about all of it
        if a rule fails, or if a rule is not known here.
        """
        verdicts = [] if self.always_asks else judge(rules, evidence)
        passed = [verdict for verdict in verdicts if verdict is not None and verdict.passed]
        if len(passed) == len(rules):
            return passed
        asked = [Asked(rule.expectation, rule.arguments | {"severity": rule.severity}, rule.name) for rule in rules]
        return _judged(asked, evidence_frame(evidence.rows, rules))

    def judge_rows(self, owners: Sequence[OwnerExpectation], rows: Any) -> list[Verdict]:
        """Each of the owner's expectations over a pandas or Spark DataFrame of rows, in order; those with a condition
        over the rows it selects.

        A figure that no rows do not have, such as a mean, is not asked of none.

        Raises InvalidUsage for arguments that Great Expectations refuses.
        """
        groups: dict[Condition | None, list[int]] = {}
        for at, owner in enumerate(owners):
            groups.setdefault(owner.condition, []).append(at)
        verdicts: dict[int, Verdict] = {}
        for condition, places in groups.items():
            selected = rows if condition is None else _selected(rows, condition)
            if any(owners[at].is_aggregate for at in places) and _is_empty(selected):
                verdicts |= {at: Verdict.unasked(NO_ROWS) for at in places if owners[at].is_aggregate}
                places = [at for at in places if at not in verdicts]
            asked = [Asked(owners[at].name, owners[at].judged, str(owners[at])) for at in places]
            verdicts |= zip(places, _judged(asked, selected) if asked else (), strict=True)
        return [verdicts[at] for at in range(len(owners))]


def _judged(asked: Sequence[Asked], frame: Any) -> list[Verdict]:
    """One evaluation of all; where rows of a pandas frame fail, a second one of what failed says which."""
    verdicts = [_verdict(result) for result in evaluate(asked, frame, "BASIC")]
    failed = [at for at, verdict in enumerate(verdicts) if not verdict.passed and verdict.failing]
    if failed and is_pandas(frame):
        again = evaluate([asked[at] for at in failed], frame, "COMPLETE")
        for at, result in zip(failed, again, strict=True):
            verdicts[at] = _verdict(result)
    return verdicts


def evidence_frame(rows: Sequence[Row], rules: Sequence[Rule]) -> pd.DataFrame:
    """The evidence that rules are about as a frame: integers as int64, figures that may be unknown as float64, the rest
    as objects."""
    import pandas as pd

    asked = dict.fromkeys(name for rule in rules for name in rule.figures)
    columns = {}
    for name in asked:
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        numeric = all(isinstance(value, int | float) for value in known)
        unknown = numeric and len(known) < len(values) and name not in _TEXTS
        columns[name] = pd.Series(values, dtype="float64" if unknown else None)
    return pd.DataFrame(columns)


_TEXTS = ("hole", "uncertified", "altered")
"""Evidence that is text or nothing: a column of nothing but nulls does not show that."""


def _is_empty(rows: Any) -> bool:
    return bool(rows.empty if is_pandas(rows) else rows.isEmpty())


def _selected(rows: Any, condition: Condition) -> Any:
    if is_pandas(rows):
        return rows[pandas_mask(condition, rows)]
    return rows.filter(spark_column(condition, rows))


def _verdict(result: Any) -> Verdict:
    found = result.result or {}
    return Verdict(
        passed=bool(result.success),
        failing=found.get("unexpected_count"),
        positions=tuple(found.get("unexpected_index_list") or ()),
        values=tuple(found.get("partial_unexpected_list") or ()),
        observed=found.get("observed_value"),
        error=_error(result.exception_info),
        judged=found.get("element_count"),
    )


def _error(info: Mapping[str, Any]) -> str | None:
    """The first exception's message: the info describes one exception, or maps metrics to one each."""
    each: Iterable[Any] = [info] if "raised_exception" in info else info.values()
    raised = (one["exception_message"] for one in each if isinstance(one, Mapping) and one["raised_exception"])
    return next((shorten(" ".join(str(message).split()), ERROR_LENGTH) for message in raised), None)

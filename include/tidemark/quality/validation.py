"""Running suites with Great Expectations. Importing it takes seconds, so it is imported inside the functions
only."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage
from tidemark.quality import regexes
from tidemark.quality.conditions import Condition, pandas_mask, spark_column
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.expectations import OwnerExpectation
from tidemark.quality.suites import Rule

if TYPE_CHECKING:
    import pandas as pd

ERROR_LENGTH = 300
"""Characters kept of why an expectation could not be evaluated: Spark's reasons include whole stack traces."""
_ONE_AT_A_TIME = threading.Lock()
"""Great Expectations keeps its current context in a global of the process."""


@dataclass(frozen=True)
class Verdict:
    """What an expectation came to: `positions` are the failing rows of a pandas frame, `values` some of what
    they hold (of the columns the expectation is about), `error` why it could not be evaluated at all."""

    passed: bool
    failing: int | None
    positions: tuple[int, ...]
    values: tuple[Any, ...]
    observed: Any
    error: str | None
    judged: int | None = None
    """How many values it was asked of, where it is asked of each."""


@dataclass
class Validator:
    """One gate run's Great Expectations context."""

    _context: Any = field(default=None, repr=False)

    def judge_evidence(self, name: str, rules: Sequence[Rule], evidence: Evidence) -> list[Verdict]:
        """Each rule over the evidence, in order; `positions` are rows of the evidence."""
        expectations = [
            _expectation(rule.expectation, rule.arguments | {"severity": rule.severity}, rule.name) for rule in rules
        ]
        return self._judge(name, expectations, evidence_frame(evidence.rows))

    def judge_rows(self, name: str, owners: Sequence[OwnerExpectation], rows: Any) -> list[Verdict]:
        """Each of the owner's expectations over a pandas or Spark DataFrame of rows, in order; those with a condition
        over the rows it selects.

        Raises InvalidUsage for arguments that Great Expectations refuses.
        """
        groups: dict[Condition | None, list[int]] = {}
        for at, owner in enumerate(owners):
            groups.setdefault(owner.condition, []).append(at)
        verdicts: dict[int, Verdict] = {}
        for number, (condition, places) in enumerate(groups.items()):
            expectations = [_expectation(owners[at].name, owners[at].judged, str(owners[at])) for at in places]
            selected = rows if condition is None else _selected(rows, condition)
            verdicts |= zip(places, self._judge(f"{name} {number}", expectations, selected), strict=True)
        return [verdicts[at] for at in range(len(owners))]

    def _judge(self, name: str, expectations: list[Any], frame: Any) -> list[Verdict]:
        gx = _great_expectations()
        with _ONE_AT_A_TIME:
            if self._context is None:
                self._context = gx.get_context(mode="ephemeral")
                self._context.variables.progress_bars = {"globally": False}
            suite = self._context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
            definition = self._context.validation_definitions.add(
                gx.ValidationDefinition(name=name, data=self._batches(name, frame), suite=suite)
            )
            done = definition.run(
                batch_parameters={"dataframe": frame},
                result_format={"result_format": "COMPLETE" if _is_pandas(frame) else "SUMMARY"},
            )
        # Results come in an order of their own, and those that could not be evaluated first: match them by id.
        by_id = {result.expectation_config.id: result for result in done.results}
        return [_verdict(by_id[expectation.id]) for expectation in suite.expectations]

    def _batches(self, name: str, frame: Any) -> Any:
        sources = self._context.data_sources
        source = sources.add_pandas(name) if _is_pandas(frame) else sources.add_spark(name)
        return source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("whole")


def evidence_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Evidence as a frame: integers as int64, figures that may be unknown as float64, the rest as objects."""
    import pandas as pd

    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        numeric = all(isinstance(value, int | float) for value in known)
        unknown = numeric and len(known) < len(values) and name not in _TEXTS
        columns[name] = pd.Series(values, dtype="float64" if unknown else None)
    return pd.DataFrame(columns)


_TEXTS = ("hole", "unvouched", "altered")
"""Evidence that is text or nothing: a column of nothing but nulls does not tell."""


@cache
def _great_expectations() -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    log = logging.getLogger("great_expectations")
    log.setLevel(logging.ERROR)  # it warns of whatever stands in for something of its own
    import great_expectations

    regexes.register()
    log.setLevel(logging.WARNING)
    return great_expectations


def _expectation(name: str, arguments: Mapping[str, Any], rule: str) -> Any:
    _great_expectations()
    from great_expectations.expectations.registry import get_expectation_impl

    try:
        return get_expectation_impl(name)(**arguments, meta={"rule": rule})
    except (TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InvalidUsage(f"{rule} is refused by Great Expectations: {said}") from None


def _selected(rows: Any, condition: Condition) -> Any:
    if _is_pandas(rows):
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


def _is_pandas(frame: Any) -> bool:
    import pandas as pd

    return isinstance(frame, pd.DataFrame)

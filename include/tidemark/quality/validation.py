"""Running suites with Great Expectations. Importing it takes seconds, so it is imported inside the functions
only."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage
from tidemark.quality.evidence import Evidence, Row
from tidemark.quality.expectations import OwnerExpectation
from tidemark.quality.suites import PARAMETERS, Rule

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


@dataclass
class Validator:
    """One gate run's Great Expectations context: runs suites, keeps their results for the docs page.

    `run` names the run on that page.
    """

    run: str
    _context: Any = field(default=None, repr=False)

    def judge_evidence(self, name: str, rules: Sequence[Rule], evidence: Evidence) -> list[Verdict]:
        """Each rule over the evidence, in order; `positions` are rows of the evidence."""
        expectations = [
            _expectation(rule.expectation, rule.arguments | {"severity": rule.severity}, rule.name) for rule in rules
        ]
        return self._judge(name, expectations, evidence_frame(evidence.rows), PARAMETERS)

    def judge_rows(self, name: str, owners: Sequence[OwnerExpectation], rows: Any) -> list[Verdict]:
        """Each of the owner's expectations over a pandas or Spark DataFrame of rows, in order.

        Raises InvalidUsage for arguments that Great Expectations refuses.
        """
        expectations: list[Any] = []
        parameters: dict[str, Any] = {}
        for at, owner in enumerate(owners):
            # Handed over when the suite runs: within a suite, which is stored as JSON, a date would turn into text.
            stand_ins = {argument: {"$PARAMETER": f"{argument}_{at}"} for argument in owner.typed}
            parameters |= {f"{argument}_{at}": value for argument, value in owner.typed.items()}
            expectations.append(_expectation(owner.name, owner.arguments | stand_ins, str(owner)))
        return self._judge(name, expectations, rows, parameters)

    def build_docs(self, folder: Path) -> Path:
        """The Data Docs site of all that was judged, in `folder` in place of what was there; returns its
        index page."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        backend = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
        site = {
            "class_name": "SiteBuilder",
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            "store_backend": backend,
        }
        with _ONE_AT_A_TIME:
            self._context.add_data_docs_site("docs", site)
            self._context.build_data_docs(site_names=["docs"])
        return folder / "index.html"

    def _judge(self, name: str, expectations: list[Any], frame: Any, parameters: Mapping[str, Any]) -> list[Verdict]:
        gx = _great_expectations()
        from great_expectations.core.run_identifier import RunIdentifier

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
                expectation_parameters=dict(parameters),
                result_format={"result_format": "COMPLETE" if _is_pandas(frame) else "SUMMARY"},
                run_id=RunIdentifier(run_name=_as_file_name(self.run)),
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


def _great_expectations() -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    import great_expectations

    return great_expectations


def _expectation(name: str, arguments: Mapping[str, Any], rule: str) -> Any:
    _great_expectations()
    from great_expectations.expectations.registry import get_expectation_impl

    try:
        return get_expectation_impl(name)(**arguments, meta={"rule": rule})
    except (TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InvalidUsage(f"{rule} is refused by Great Expectations: {said}") from None


def _as_file_name(run: str) -> str:
    """The run's name as part of a page's path: an attempt's token may hold separators of folders."""
    return run.replace("/", " ").replace("\\", " ")


def _verdict(result: Any) -> Verdict:
    found = result.result or {}
    return Verdict(
        passed=bool(result.success),
        failing=found.get("unexpected_count"),
        positions=tuple(found.get("unexpected_index_list") or ()),
        values=tuple(found.get("partial_unexpected_list") or ()),
        observed=found.get("observed_value"),
        error=_error(result.exception_info),
    )


def _error(info: Mapping[str, Any]) -> str | None:
    """The first exception's message: the info describes one exception, or maps metrics to one each."""
    each: Iterable[Any] = [info] if "raised_exception" in info else info.values()
    raised = (one["exception_message"] for one in each if isinstance(one, Mapping) and one["raised_exception"])
    return next((shorten(" ".join(str(message).split()), ERROR_LENGTH) for message in raised), None)


def _is_pandas(frame: Any) -> bool:
    import pandas as pd

    return isinstance(frame, pd.DataFrame)

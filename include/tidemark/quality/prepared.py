"""Expectations prepared once in a process and asked of one frame after the other.

A validation definition of Great Expectations finds out in every run which metrics each expectation needs, and copies
the expectation through pydantic and JSON a hundred times meanwhile: nine tenths of a gate's time, for a handful of
numbers. What it finds out follows from the expectation alone, so here it is found out once, and kept by the
expectation's content. Great Expectations stays the judge: an expectation is an object of its own class, its engines
compute the metrics from the frame, and its `metrics_validate` makes the result of them. There is no context, so nothing
is stored, rendered or sent anywhere.

Threads may evaluate at once: what is kept is only read, and each evaluation has an engine and a graph of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from tidemark.errors import InvalidUsage, require
from tidemark.quality import regexes
from tidemark.quality.gx_import import import_package, quiet

require("great_expectations", "quality")

Format = Literal["BASIC", "COMPLETE"]
"""How much a result says: counts and the first values, or also where in the frame every failing row is."""
MOST_KEPT = 1_000
"""Prepared expectations kept, the last used ones, each of 30 kB: a process that outlives many suites must not grow."""
_BATCH = "batch"
"""What a frame is called inside its engine. Always the same, as the names of metrics hold it."""
_KEPT: dict[tuple[Any, ...], _Prepared] = {}
"""The last used ones last."""
_PREPARING = threading.RLock()


def _forked() -> None:
    """A lock that another thread of the parent had is nobody's in the child."""
    global _PREPARING
    _PREPARING = threading.RLock()


os.register_at_fork(after_in_child=_forked)


@dataclass(frozen=True)
class Asked:
    """One expectation: its snake-case name, its arguments as Great Expectations takes them, and what people call it."""

    name: str
    arguments: Mapping[str, Any]
    rule: str


@dataclass(frozen=True)
class _Prepared:
    """An expectation of Great Expectations, and the edges of the graph of metrics that its result is made of."""

    expectation: Any
    edges: tuple[Any, ...]


def evaluate(asked: Sequence[Asked], frame: Any, result_format: Format) -> list[Any]:
    """What Great Expectations makes of each expectation over a pandas or Spark DataFrame: its
    ExpectationValidationResults, in the order of the expectations.

    An expectation that cannot be evaluated has a result too, which says why. Raises InvalidUsage for arguments that
    Great Expectations refuses.
    """
    with _PREPARING:
        great_expectations(for_spark=not is_pandas(frame))
    from great_expectations.validator.validation_graph import ValidationGraph

    engine = _engine(frame)
    prepared = [_prepared(one, engine, result_format) for one in asked]
    edges = {edge.id: edge for one in prepared for edge in one.edges}
    graph = ValidationGraph(engine, list(edges.values()))
    metrics, failed = graph.resolve(runtime_configuration=_runtime(result_format), show_progress_bars=False)
    return [_result(one, engine, metrics, failed, result_format) for one in prepared]


def make_ready(name: str) -> None:
    """Have an expectation's class ready, by its snake-case name."""
    with _PREPARING:
        great_expectations()
        _settled(_class(name))


def is_pandas(frame: Any) -> bool:
    """Whether a frame is one of pandas, and not of Spark."""
    import pandas as pd

    return isinstance(frame, pd.DataFrame)


def great_expectations(*, for_spark: bool = True) -> Any:
    """The package, imported once, with Spark's engine only if it is `for_spark` (gx_import.py), and made to keep to
    itself. Where it is imported again for Spark, what was prepared before is prepared again."""
    package: Any = import_package(for_spark=for_spark)
    if not getattr(package, "_tidemark_registered", False):
        from great_expectations.validator import validation_graph

        _KEPT.clear()
        _settled.cache_clear()
        with quiet():
            regexes.register()
        # Nobody sees the bars, and the lock that each takes is a semaphore that all forks of this process share: one
        # that is killed while it has the lock would leave it locked for all.
        validation_graph.tqdm = _NoBar  # type: ignore[attr-defined]
        package._tidemark_registered = True
    return package


class _NoBar:
    """What Great Expectations draws in place of a progress bar."""

    def __init__(self, **_: Any) -> None: ...

    def update(self, _: int) -> None: ...

    def refresh(self) -> None: ...

    def close(self) -> None: ...


def _runtime(result_format: Format) -> dict[str, Any]:
    return {"result_format": {"result_format": result_format}}


def _engine(frame: Any) -> Any:
    """An engine that holds this frame, and nothing of an earlier one: engines remember what they computed."""
    from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

    engine: Any
    if is_pandas(frame):
        engine = PandasExecutionEngine()
    else:
        engine = SparkDFExecutionEngine(spark=frame.sparkSession, persist=False)
    engine.load_batch_data(_BATCH, frame)
    return engine


def _prepared(asked: Asked, engine: Any, result_format: Format) -> _Prepared:
    # Arguments as text: Python holds 1, 1.0 and True for equal, expectations do not.
    key = (type(engine), asked.name, repr(sorted(asked.arguments.items())), asked.rule, result_format)
    with _PREPARING:
        kept = _KEPT.pop(key, None) or _made(asked, engine, result_format)
        _KEPT[key] = kept
        if len(_KEPT) > MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
    return kept


def _made(asked: Asked, engine: Any, result_format: Format) -> _Prepared:
    from great_expectations.validator.metrics_calculator import MetricsCalculator

    kind = _class(asked.name)
    arguments = {**asked.arguments, "batch_id": _BATCH, "meta": {"rule": asked.rule}}
    try:
        plain = kind(**arguments)
    except (TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InvalidUsage(f"{asked.rule} is refused by Great Expectations: {said}") from None
    needs = plain.get_validation_dependencies(engine, _runtime(result_format))
    graph = MetricsCalculator(engine).build_metric_dependency_graph(
        needs.get_metric_configurations(), _runtime(result_format)
    )
    expectation = _settled(kind)(**arguments)
    expectation._settle(plain.configuration, needs)
    return _Prepared(expectation, tuple(graph.edges))


def _class(name: str) -> Any:
    from great_expectations.expectations.registry import get_expectation_impl

    return get_expectation_impl(name)


@cache
def _settled(kind: Any) -> Any:
    """The class of an expectation, with the two answers known that Great Expectations asks its objects for all the time
    and that they compute again each time: their configuration, and the metrics they need."""
    from great_expectations.compatibility.pydantic import PrivateAttr

    def settle(self: Any, configuration: Any, needs: Any) -> None:
        self._configuration, self._needs = configuration, needs

    def validation_dependencies(self: Any, *_: Any, **__: Any) -> Any:
        return type(self._needs)(dict(self._needs.metric_configurations), dict(self._needs.result_format))

    body = {
        "__module__": __name__,
        "_configuration": PrivateAttr(),
        "_needs": PrivateAttr(),
        "_settle": settle,
        "configuration": property(lambda self: self._configuration),
        "get_validation_dependencies": validation_dependencies,
    }
    return type(kind)(f"Settled{kind.__name__}", (kind,), body)


def _result(prepared: _Prepared, engine: Any, metrics: Any, failed: Any, result_format: Format) -> Any:
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.validator.exception_info import ExceptionInfo

    expectation, why = prepared.expectation, None
    if failed:
        needed = {metric.id for edge in prepared.edges for metric in (edge.left, edge.right) if metric is not None}
        why = {str(metric): one["exception_info"] for metric, one in failed.items() if metric in needed}
    if not why:
        try:
            return expectation.metrics_validate(metrics, _runtime(result_format), engine)
        except Exception as error:  # of whatever kind, as Great Expectations' own validator does
            why = ExceptionInfo("", str(error))
    return ExpectationValidationResult(success=False, exception_info=why, expectation_config=expectation.configuration)

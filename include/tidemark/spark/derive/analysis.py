"""What Spark makes of a definition before any row is read: its columns, and whether it says the same every time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidemark.errors import InvalidUsage, listed
from tidemark.spark.derive.raised import message_of, refusal_of_planning

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_AGGREGATES = _EXPRESSIONS + "aggregate."
_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
UNSTABLE = {
    **dict.fromkeys((_EXPRESSIONS + name for name in ("CurrentTimestamp", "Now", "LocalTimestamp")), "the time it is"),
    **dict.fromkeys((_EXPRESSIONS + name for name in ("CurrentDate", "CurDateExpressionBuilder")), "the day it is"),
    _EXPRESSIONS + "CurrentTime": "the time it is",
    **dict.fromkeys((_EXPRESSIONS + name for name in ("CurrentUser", "CurrentDatabase")), "who asks"),
    **dict.fromkeys((_AGGREGATES + name for name in ("First", "Last")), "whichever row comes first"),
    **dict.fromkeys(
        (_AGGREGATES + name for name in ("CollectList", "CollectSet", "ListAgg")), "the order rows come in"
    ),
    **dict.fromkeys((_PLANS + name for name in ("Sample", "Tail")), "which rows come first"),
}
"""Of what Spark calls deterministic, what is not the same every time; and what it depends on."""
_LIMITS = {_PLANS + name for name in ("GlobalLimit", "LocalLimit", "Offset")}


def analysed(spark: SparkSession, name: str, query: str) -> DataFrame:
    """The query over the views of a session. InvalidUsage in one line where Spark does not understand it."""
    try:
        return spark.sql(query)
    except PySparkException as error:
        raise InvalidUsage(f"the definition of {name}: {message_of(error)}") from None


def check_same_every_time(name: str, frame: DataFrame) -> None:
    """Raise InvalidUsage for a definition of which Spark itself says that it is not the same every time."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    if not plan.deterministic():
        raise InvalidUsage(
            f"the definition of {name} is not the same every time it is asked (rand, uuid and the like); leave that out"
        )
    if _clock_words(plan):
        raise InvalidUsage(
            f"the definition of {name} depends on the time it is: a constant text is taken for it, as 'now' or "
            "'today'; take a time from a column"
        )


def check_planned(name: str, frame: DataFrame) -> None:
    """Raise InvalidUsage for a definition that Spark understands, and cannot plan."""
    try:
        frame._jdf.queryExecution().executedPlan()
    except (PySparkException, Py4JJavaError) as error:
        raise refusal_of_planning(name, error) from None


def check_function(name: str, frame: DataFrame) -> None:
    """Raise InvalidUsage for a definition in Python that depends on when it is asked, or on the order rows come in: of
    a select, that is known from its text."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    nodes = json.loads(plan.toJSON())
    found = sorted({UNSTABLE[one] for one in _classes(nodes) if one in UNSTABLE} | _clock_words(plan))
    if found:
        raise InvalidUsage(f"the definition of {name} depends on {listed(found)}; leave that out, or order by a key")
    _check_limits(name, nodes)


def _clock_words(plan: Any) -> set[str]:
    """The time it is, where a constant text is taken for it: 'now', 'today' and the like, which Spark replaces."""
    jvm: Any = SparkContext._jvm
    rules = jvm.org.apache.spark.sql.catalyst.optimizer
    plain = rules.ReplaceExpressions.apply(plan)  # to_date and the like as the casts that they are
    replaced = rules.SpecialDatetimeValues.apply(plain)
    return set() if replaced.fastEquals(plain) else {UNSTABLE[_EXPRESSIONS + "Now"]}


def _check_limits(name: str, nodes: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidUsage for rows that are left out of no order."""
    for at, node in enumerate(nodes):
        below = nodes[at + 1 :]
        ordered = next((one["class"] for one in below if one["class"] not in _LIMITS), "") == _PLANS + "Sort"
        if node["class"] in _LIMITS and not ordered:
            raise InvalidUsage(f"the definition of {name} takes the first rows of no order; order by a key")


def _classes(plan: Any) -> Iterator[str]:
    """The class names anywhere in a plan that Spark gives as JSON."""
    if isinstance(plan, Mapping):
        if isinstance(plan.get("class"), str):
            yield plan["class"]
        plan = plan.values()
    elif not isinstance(plan, list):
        return
    for one in plan:
        yield from _classes(one)

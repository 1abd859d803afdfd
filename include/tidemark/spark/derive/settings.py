"""The sessions in which answers are computed: settings that no answer may depend on, and those of small queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemark.definition.exact_sum import EXACT_SUM, exact_sum
from tidemark.spark.session import SETTINGS

OWN_SETTINGS = {
    **{name: value for name, value in SETTINGS.items() if name.startswith("spark.sql.") and "shuffle" not in name},
    "spark.sql.ansi.enabled": "true",
    # Else an average of decimals of few digits is one of floats: rounded otherwise, and of large ones by their order.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.DecimalAggregates",
}
"""What an answer must not depend on, whatever the session was set to."""
IN_ONE_TASK = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
"""For what one task computes sooner than several do."""
AS_IT_IS = IN_ONE_TASK | {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For rows so few that compiling a query takes longer than to interpret it."""
_KEPT = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")


def isolated_session(spark: SparkSession) -> SparkSession:
    """A session in which no view has a name yet, with settings that make answers what they should be, and the function
    that recipes call."""
    own = spark.newSession()
    for name in _KEPT:
        own.conf.set(name, str(spark.conf.get(name)))
    for name, value in OWN_SETTINGS.items():
        own.conf.set(name, value)
    own.udf.register(EXACT_SUM, F.udf(exact_sum, "double", useArrow=True))
    return own


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session, for what is planned in the block."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, previous in before.items():
            spark.conf.unset(name) if previous is None else spark.conf.set(name, previous)

"""The Spark session every app uses, with the few settings its correctness or cost depends on."""

from __future__ import annotations

import logging
import os
import sys

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidemark.resident.confined import private_conf, ui_conf
from tidemark.resident.sizes import sizes_for
from tidemark.spark.package import ship
from tidemark.spark.private_folder import private_folder
from tidemark.spark.watch import watch

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    # Else each call of a column or frame asks the JVM five things, to say from which line it was called if it fails.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(name: str) -> SparkSession:
    """The running session, or a new one on the master spark-submit chose (local[*] without one).

    A new one of a local master listens on the loopback interface only, and is authenticated; its temporary files are
    in a private folder. One of a standalone cluster takes its share of it (resident/sizes.py). Executors on other
    machines get this process's package. How its jobs get on is said on stderr (`watch`).
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in {**_defaults(), **SETTINGS}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # What is wrong with a query is reported once, in a line of ours, not before that with its plan and a stack of
    # calls.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("WARN")
    ship(spark)
    watch(spark.sparkContext)
    return spark


def _defaults() -> dict[str, str]:
    """What keeps a Spark that starts here to itself and leaves room on a cluster, if nobody has chosen otherwise."""
    if SparkContext._active_spark_context is not None or "SPARK_REMOTE" in os.environ:
        return {}
    with private_folder():
        SparkContext._ensure_initialized()  # the JVM, if there is none yet: it knows what was chosen
    chosen = dict(SparkConf(_jvm=SparkContext._jvm).getAll())
    master = chosen.get("spark.master", "local")
    added = {**private_conf(master), **ui_conf(master), **sizes_for(SparkContext._jvm, chosen)}
    return {name: value for name, value in added.items() if name not in chosen}

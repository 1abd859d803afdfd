"""The Spark session every app uses, with the few settings its correctness or cost depends on."""

from __future__ import annotations

import logging
import os
import sys

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidemark.resident.confined import private_conf
from tidemark.spark.package import ship
from tidemark.spark.private_folder import private_folder

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    # Else each call of a column or frame asks the JVM five things, to say from which line it was called if it fails.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(name: str) -> SparkSession:
    """The running session, or a new one on the master spark-submit chose (local[*] without one).

    A new one of a local master listens on the loopback interface only, and is authenticated; its temporary files are
    in a private folder. Executors on other machines get this process's package.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in {**_confined(), **SETTINGS}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # What is wrong with a query is told once, in a line of ours, not before that with its plan and a stack of calls.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    spark.sparkContext.setLogLevel("WARN")
    ship(spark)
    return spark


def _confined() -> dict[str, str]:
    """What keeps a Spark that starts here to itself, if nobody has chosen otherwise."""
    if SparkContext._active_spark_context is not None or "SPARK_REMOTE" in os.environ:
        return {}
    with private_folder():
        SparkContext._ensure_initialized()  # the JVM, if there is none yet: it knows what was chosen
    chosen = dict(SparkConf(_jvm=SparkContext._jvm).getAll())
    return {k: v for k, v in private_conf(chosen.get("spark.master", "local")).items() if k not in chosen}

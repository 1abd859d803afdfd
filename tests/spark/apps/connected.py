"""A client of Spark Connect: what it reads by views, by the format and by frames, as one line of JSON.

It is a process of its own, since the functions of pyspark are those of one kind of session in a process. Between its
two reads it waits for a line on its input.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import tidemark


def refusal(frame: Any) -> str:
    """Why a frame cannot be read."""
    try:
        frame().collect()
    except PySparkException as error:
        return str(error)
    return ""


def main(remote: str, root: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    path = f"{root}/events"

    def load(**options: str) -> Any:
        return spark.read.format("tidemark").options(**options).load(path)

    report: dict[str, Any] = {"unknown": refusal(load), "versions": tidemark.register(spark, root, ["events"])}
    pinned = load(version=str(report["versions"]["events"]))
    report["rows"] = [spark.table("events").toArrow().to_pylist(), pinned.toArrow().to_pylist()]
    report["sql"] = spark.sql("SELECT count(*) AS n FROM events").collect()[0].n
    stock = tidemark.open(root, "stock").as_of(columns=["kind"]).to_spark(spark)
    report["stock"] = stock.toArrow().to_pylist()
    report["wrong"] = refusal(lambda: load(asof="2024-01-01"))
    print("ready", flush=True)
    sys.stdin.readline()
    report["later"] = [spark.table("events").count(), pinned.count(), load().count()]
    print(json.dumps(report))
    spark.stop()


main(*sys.argv[1:])

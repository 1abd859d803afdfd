"""A streaming query that is killed: the changes of a collection into a folder, one file a batch, by its number.

A batch that is written again replaces its file, so the sink takes a batch twice as once. The log beside it has a line
for each batch that is begun. Prints `started` when the query runs. With `drain` as the last word it ends when all is
read that is sealed now.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def main(collection: str, sink: str, *words: str) -> None:
    spark = SparkSession.builder.appName("streaming").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    options = {"starting": "beginning", "hold": "sink"}
    frame = spark.readStream.format("tidemark").options(**options).load(collection)

    def take(batch: Any, number: int) -> None:
        with Path(f"{sink}.log").open("a") as log:
            log.write(f"{number}\n")
        part = Path(sink) / f"part-{number}"
        pq.write_table(batch.toArrow(), part)
        part.rename(Path(sink) / f"{number}.parquet")

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", f"{sink}-checkpoint")
    query = (writer.trigger(availableNow=True) if "drain" in words else writer).start()
    print("started", flush=True)
    query.awaitTermination()
    spark.stop()


main(*sys.argv[1:])

"""Ingests and reads by a session of a program's own, whose executors have no Tidemark of theirs.

python elsewhere.py MASTER ROOT COLLECTION LANDING LOWER UPPER

Prints one JSON line: the ingest's result, the rows read, and where executors import tidemark from.
"""

import json
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

import tidemark
from tidemark.jobs.app import open_job
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.interval import Interval
from tidemark.spark.runner import SparkRunner
from tidemark.spark.session import session


def origin(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import tidemark

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"origin": [tidemark.__file__]})


def main(argv: list[str]) -> int:
    master, root, collection, landing, lower, upper = argv
    spark = SparkSession.builder.master(master).config("spark.executor.memory", "512m").getOrCreate()
    rows = tidemark.open(root, collection).as_of().to_spark(spark).count()
    job = open_job(root, collection, lambda: SparkRunner(session("elsewhere"), job.store.url))
    result = ingest(job, Interval(int(lower), int(upper)), landing_root=landing)
    found = spark.range(0, 4, 1, 4).mapInArrow(origin, "origin string").distinct().collect()
    print(json.dumps({"result": result, "rows": rows, "origins": [row[0] for row in found]}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

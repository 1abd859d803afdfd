"""Ingests on executors that are processes of their own, where the first attempt at one task lags until another is made.

spark-submit --py-files tidemark.zip cluster.py ROOT COLLECTION LANDING LOWER UPPER MARKS

Prints one JSON line: the ingest's result, where executors import tidemark from, and the attempts at the lagging task.
What executors run is defined here, in `__main__`, so that it travels by value.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.jobs.app import open_job
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.interval import Interval
from tidemark.spark import runner as spark_runner
from tidemark.spark.session import session

PATIENCE_S = 90


def lagging(folder: str, genuine: Any) -> Any:
    """Kernels as they are, but the first attempt at the task of the file 0.parquet ends only after the second one."""

    def run_encoded(store: Any, name: str, task: bytes) -> bytes:
        answer: bytes = genuine(store, name, task)
        if b"/0.parquet" not in task:
            return answer
        marks = Path(folder)
        (marks / f"attempt-{os.getpid()}-{time.time_ns()}").touch()
        try:
            (marks / "first").touch(exist_ok=False)
        except FileExistsError:
            return answer
        deadline = time.monotonic() + PATIENCE_S
        while len(list(marks.glob("attempt-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(3)  # the other one answers first
        return answer

    return run_encoded


def origins(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import tidemark.spark.runner
    import tidemark.storage

    for _ in batches:
        files = [tidemark.__file__, tidemark.storage.__file__, tidemark.spark.runner.__file__]
        yield pa.RecordBatch.from_pydict({"origin": files})


def main(argv: list[str]) -> int:
    root, collection, landing, lower, upper, marks = argv
    spark = session("cluster")
    found = spark.range(0, 4, 1, 4).mapInArrow(origins, "origin string").distinct().collect()
    spark_runner.run_encoded = lagging(marks, spark_runner.run_encoded)
    job = open_job(root, collection, lambda: spark_runner.SparkRunner(spark, job.store.url))
    result = ingest(job, Interval(int(lower), int(upper)), landing_root=landing)
    attempts = len(list(Path(marks).glob("attempt-*")))
    print(json.dumps({"result": result, "origins": sorted(row[0] for row in found), "attempts": attempts}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

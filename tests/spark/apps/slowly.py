"""Runs so many tasks of so many seconds each, as a step would, and says `applied`.

spark-submit slowly.py TASKS SECONDS [stay]

With `stay` it keeps its executors until it is killed.
"""

import json
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from tidemark.spark.session import session
from tidemark.spark.watch import reading


def main(argv: list[str]) -> int:
    tasks, seconds = int(argv[0]), float(argv[1])

    def sleep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(seconds)
            yield batch

    spark = session("slowly")
    with reading(rows=tasks * 12_000_000, size=0):
        done = spark.range(0, tasks, 1, tasks).mapInArrow(sleep, "id long").count()
    assert done == tasks
    if argv[2:] == ["stay"]:
        time.sleep(3600)
    print(json.dumps({"outcome": "applied"}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Compacts batches that hold more than Spark's heap: small_heap.py ROOT ROWS WIDE

Prints one JSON line: what the compaction did, the heap's limit, and the bytes its inputs have in memory. What forwards
and merges them are the apps' own runner and kernels; the inputs are written here, by the kernels' own writer.
"""

import json
import sys
from uuid import uuid4

import pyarrow as pa

from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.schema import updates_schema
from tidemark.jobs.job import Job
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.write import trace_batch
from tidemark.model.arrangement import Fence
from tidemark.model.batch import Description
from tidemark.model.change import Attempted, Certified, Change, CompactionAllowed, Created, Drained, Sealed
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Source
from tidemark.model.interval import Interval
from tidemark.spark.runner import SparkRunner
from tidemark.spark.session import session
from tidemark.storage.log.log import StateLog
from tidemark.storage.stores.local import LocalStore

BATCHES, ROUND = 3, 4_000


def declared() -> Collection:
    columns = (Column("k", ColumnType.INT),), (Column("v", ColumnType.STRING),)
    return Collection("wide", *columns, Landed(Source("*", Format.PARQUET, Envelope.APPEND)), live_batches=2)


def drained(job: Job, number: int, rows: int, wide: int) -> int:
    """A trace batch of its own times whose keys alternate with the others'; its bytes in memory."""
    schema, size = updates_schema(declared()), 0
    lower = number * 10
    with PartWriter(job.store, f"data/b{number}", schema, key_width=1, facts=False) as writer:
        for start in range(0, rows, ROUND):
            some = range(start, start + ROUND)
            times = pa.array([lower + row % 10 for row in some], pa.int64())
            words = pa.array([f"{number}{row % 7}".ljust(wide, "w") for row in some])
            keys = pa.array([row * BATCHES + number for row in some], pa.int64())
            columns = [keys, words, times, times, pa.array([1] * ROUND, pa.int64())]
            batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            size += batch.nbytes
            writer.write(batch)
        parts = writer.close()
    fence = Fence("drain", Interval(lower, lower + 10), job.attempt)
    batch = trace_batch(job, f"b{number}", Description(lower, lower + 10), 0, parts)
    for change in (Sealed(lower + 10, lower + 10, lower + 10), Attempted(fence), Drained(fence, batch)):
        committed(job, change)
    committed(job, Certified(Gate.TRACE, declared().suite(Gate.TRACE), (batch.id,)))
    return size


def committed(job: Job, change: Change) -> None:
    job.log.commit(job.log.load(), change)


def main(argv: list[str]) -> int:
    root, rows, wide = argv[0], int(argv[1]), int(argv[2])
    spark = session("small heap")
    store = LocalStore(root)
    log = StateLog(store, lambda: uuid4().hex)
    job = Job(store, log, lambda: SparkRunner(spark, root), "once", lambda: uuid4().hex)
    committed(job, Created(declared()))
    size = sum(drained(job, number, rows, wide) for number in range(BATCHES))
    committed(job, CompactionAllowed(15))
    result = compact(job, Interval(0, 10))
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    state = log.load().state
    found = {"result": result, "heap": heap, "bytes": size, "since": state.trace[0].description.since}
    print(json.dumps(found | {"sound": verify(job).sound}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

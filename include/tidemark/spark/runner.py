"""Kernels over Spark executors: one Spark task each, JSON in, JSON out.

The answers are the rows of a Spark action, so each comes from the one attempt Spark accepted: a retried or speculative
attempt writes under names of its own and leaves orphans only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemark.arrow.kernels.registry import kernel, run_encoded
from tidemark.errors import Corruption, TidemarkError
from tidemark.plan.task_size import Size, size_of
from tidemark.spark.lost import worker_loss_as_unavailable
from tidemark.spark.watch import Reading, reading
from tidemark.spark.workers import in_workers
from tidemark.storage import open_store
from tidemark.storage.documents.codec import decode, encode

WAVE_BYTES = 64 * 2**20
"""Most bytes of tasks that go to executors at once: each executor's process is sent all of them."""
ANSWER = pa.schema([("id", pa.int64()), ("answer", pa.binary()), ("error", pa.binary())])


class SparkRunner:
    """Runs tasks on a Spark session against the store at `url`, which executors open themselves."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.spark = spark
        self.url = url

    @property
    def parallelism(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        """The kernel's answers in the order of the tasks. A TidemarkError raised by a task is raised here as it was."""
        if not tasks:
            return []
        called = kernel(name)
        answers: list[Any] = []
        for wave in in_waves(encode(task, called.task) for task in tasks):
            size = sum((size_of(task) or Size() for task in tasks[len(answers) : len(answers) + len(wave)]), Size())
            with reading(Reading(size.rows, size.bytes, size.objects)):
                encoded = self._run(name, wave)
            answers += [decode(answer, called.answer, name=f"{name} answer") for answer in encoded]
        return answers

    def _run(self, name: str, tasks: list[bytes]) -> list[bytes]:
        with worker_loss_as_unavailable():
            answers = _mapped(self.spark, self.url, name, tasks).collect()
        for row in answers:
            if row["error"] is not None:
                raise revived(bytes(row["error"]))
        ordered = {row["id"]: bytes(row["answer"]) for row in answers}
        if sorted(ordered) != list(range(len(tasks))):
            raise Corruption(f"{len(tasks)} tasks gave {len(answers)} answers")
        return [ordered[at] for at in range(len(tasks))]


def in_waves(tasks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Tasks in order, as many together as WAVE_BYTES allow, at least one."""
    wave: list[bytes] = []
    size = 0
    for task in tasks:
        if wave and size + len(task) > WAVE_BYTES:
            yield wave
            wave, size = [], 0
        wave.append(task)
        size += len(task)
    if wave:
        yield wave


def _mapped(spark: SparkSession, url: str, name: str, tasks: list[bytes]) -> DataFrame:
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(in_workers(_executor(url, name, tasks)), "id long, answer binary, error binary")


def _executor(
    url: str, name: str, tasks: list[bytes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = open_store(url)
        for batch in batches:
            for at in batch.column(0).to_pylist():
                answer, error = None, None
                try:
                    answer = run_encoded(store, name, tasks[at])
                except TidemarkError as raised:
                    # Travels as a row: Spark would retry it four times and wrap it in a stack trace.
                    error = travelling(raised)
                yield pa.RecordBatch.from_pydict({"id": [at], "answer": [answer], "error": [error]}, schema=ANSWER)

    return run


def travelling(error: TidemarkError) -> bytes:
    """An error as it travels within a row, for `revived`."""
    import pickle

    return pickle.dumps(error)


def revived(data: bytes) -> Exception:
    """An error pickled by our own executor within this job: not input from outside."""
    import pickle

    error = pickle.loads(data)
    return error if isinstance(error, TidemarkError) else Corruption(f"an executor answered {error!r}")

"""Kernels run here and now, through the same JSON as executors get, so that encoding is exercised too."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from tidemark.arrow.kernels.registry import kernel, run_encoded
from tidemark.errors import TidemarkError
from tidemark.storage.documents.codec import decode, encode
from tidemark.storage.stores.store import ObjectStore


class InProcessRunner:
    """A `jobs.job.Runner` without Spark. An error of Tidemark's is pickled and raised again, as from an executor."""

    parallelism = 2

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        called = kernel(name)
        return [
            decode(self._one(name, encode(task, called.task)), called.answer, name=f"{name} answer") for task in tasks
        ]

    def _one(self, name: str, task: bytes) -> bytes:
        try:
            return run_encoded(self.store, name, task)
        except TidemarkError as error:
            raise pickle.loads(pickle.dumps(error)) from error

"""A worker that has run tasks of ours has set aside what it loaded, and goes on so."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemark
from tests.spark.support import APPEND, Made

pytestmark = pytest.mark.spark


def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects of this worker no collection looks at."""
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()] * batch.num_rows})


def test_what_workers_have_loaded_is_not_looked_at_after_each_task(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, APPEND)
    made.land(1, 20, keys=4)
    made.moved(1)
    read = tidemark.open(str(made.root), made.name).as_of().to_spark(spark)
    for _ in range(4):
        assert read.count() > 0
    frozen = {row.frozen for row in spark.range(0, 2, 1, 2).mapInArrow(counted, "frozen long").collect()}
    assert max(frozen) > 20_000, frozen

"""What the Python processes of Spark's executors do before a task of ours.

PySpark collects garbage in a worker after each task (pyspark/daemon.py), and a collection looks at every object of
every module that was loaded: 40 ms of a core with pyarrow and pandas, which is more than a task over few rows takes.
What a worker has loaded stays until it ends. So it is set aside from collections (`gc.freeze`) when a task begins, as
long as tasks still load something: the first few do, as kernels import what they need when they run.

What of those first tasks is garbage later stays, too: their own functions and little else. After them nothing more is
set aside, however long a worker lives.

Measured on tasks of one row, of which a worker has run some: each takes 38 ms of a core without, 1 ms with it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

Kernel = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
LOADING = 3
"""So many tasks load modules at most."""
_begun = 0


def in_workers(kernel: Kernel) -> Kernel:
    """A kernel as `mapInArrow` takes it: the same batches, and what its worker has loaded is set aside first."""
    return partial(_run, kernel)


def _run(kernel: Kernel, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    global _begun
    if _begun < LOADING:
        _begun += 1
        gc.freeze()
    return kernel(batches)

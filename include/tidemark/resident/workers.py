"""The daemon that forks Spark's Python workers on a local master: as pyspark's own, with the imports of our tasks done.

A worker otherwise imports pyarrow and the kernels anew, which costs more than many a task.
"""

from __future__ import annotations

import contextlib
import importlib
import sys

MODULES = ["pyspark.worker", "pyspark.sql.pandas.serializers", "pyarrow.parquet", "pyarrow.fs", "pyarrow.compute"]
MODULES += ["tidemark.spark.runner", "tidemark.arrow.kernels", "tidemark.arrow.ingest", "tidemark.arrow.merge"]

if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # standard output carries the daemon's port
        for module in MODULES:
            with contextlib.suppress(ImportError):  # the task that needs it will say so
                importlib.import_module(module)
    from pyspark.daemon import manager

    manager()

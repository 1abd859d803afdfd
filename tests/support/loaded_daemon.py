"""The process that Spark's Python workers are forked from, in the tests: it has loaded what their kernels need.

Spark's own (pyspark/daemon.py) loads nothing, so that each worker takes most of a second of a core until it has
pyarrow, pandas and our kernels. The tests start some hundred of them: a query that is to raise takes along all workers
of its task. Tests of a cluster and of spark-submit have Spark's own.

Its only other thread is that of Arrow's allocator, which copes with forks; NumPy's are prevented.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"

    import pandas  # noqa: F401
    import pyarrow.compute  # noqa: F401
    import pyspark.daemon
    import pyspark.sql.pandas.types
    import pyspark.worker

    import tidemark.spark.derive.parts
    import tidemark.spark.runner  # noqa: F401

    sys.modules["__main__"].__spec__ = pyspark.daemon.__spec__  # by which workers know that they are Spark's
    gc.freeze()
    pyspark.daemon.manager()

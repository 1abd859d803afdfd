"""Refusals in Spark's Python processes, as the one line that they are.

Spark shows the traceback of what a data source raises, unless the environment of the process says not to. Such a
process ends with the error that it shows, so what is set there is set for nobody else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidemark.errors import TidemarkError


@contextmanager
def one_line() -> Iterator[None]:
    """Let a refusal of ours reach who wrote the query without a traceback."""
    try:
        yield
    except TidemarkError:
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        if spec is not None and spec.name.startswith("pyspark."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise

"""Questions about texts that Arrow answers in the executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf


def asked(column: Any, question: Callable[[Any], Any]) -> Any:
    """A column of truths: what `question` answers of arrays of the column's values, taken as text."""

    def answered(texts: pa.Array) -> pa.Array:  # Spark reads these hints
        return question(texts)

    make: Any = arrow_udf
    return make(answered, "boolean")(column.cast("string"))

"""When rows came, and in which band a start is, by Spark: by comparisons where bounds are few, by a kernel else."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pytest
from pyspark.sql import functions as F

from tidemark.definition.recipe import TIME
from tidemark.model.window.judged import Judging
from tidemark.spark.derive.timeline import learned, passed

pytestmark = pytest.mark.spark
TIMES = [-1, *range(0, 500, 7), 2**61]


@pytest.mark.parametrize("count", [0, 1, 32, 33])
def test_few_and_many_bounds_tell_the_same_as_the_law(spark: Any, count: int) -> None:
    bounds = tuple(range(10, 10 + 10 * count, 10))
    judging = Judging(known_from=15 if count else 0, ends=bounds)
    rows = spark.createDataFrame([(time,) for time in TIMES], f"{TIME} long").repartition(2)
    found = rows.select(TIME, learned(judging).alias("learned"), passed(F.col(TIME), bounds).alias("passed")).collect()
    assert {row[TIME]: (row["learned"], row["passed"]) for row in found} == {
        time: (judging.learned(time), bisect_right(bounds, time)) for time in TIMES
    }

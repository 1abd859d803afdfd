"""Joins for which null is a value: a null of a key equals itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def joined(left: DataFrame, right: DataFrame, names: Sequence[str], how: str = "inner") -> DataFrame:
    """The rows of two frames that are equal in the columns `names`, one or more, which the answer has once, from the
    left one. Both may come of one frame. `how` is inner, left or left_semi."""
    others = [name for name in right.columns if name not in names]
    keys = [F.col(f"`{name}`").alias(f"_same{at}") for at, name in enumerate(names)]
    renamed = right.select(*keys, *(F.col(f"`{name}`") for name in others))
    same = reduce(and_, (F.col(f"`{name}`").eqNullSafe(F.col(f"_same{at}")) for at, name in enumerate(names)))
    return left.join(renamed, same, how).drop(*(f"_same{at}" for at in range(len(names))))

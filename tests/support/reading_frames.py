"""As-of and changes of a state as data frames of a session (reading.py has them as tables)."""

from __future__ import annotations

from typing import Any

from tidemark.model.arrangement import Arrangement
from tidemark.plan.read import plan_as_of, plan_changes
from tidemark.spark.read import as_of_rows, change_rows
from tidemark.storage.stores.store import ObjectStore


def as_of_frame(
    spark: Any, store: ObjectStore, state: Arrangement, *, columns: Any = None, keep: Any = None, **asked: Any
) -> Any:
    """`as_of` as a data frame of a session; with `columns` in these alone, of the rows that `keep` leaves."""
    return as_of_rows(spark, store, plan_as_of(state, **asked), columns=columns, keep=keep)


def changes_frame(spark: Any, store: ObjectStore, state: Arrangement, *, net: bool = False, **asked: Any) -> Any:
    """`changes` as a data frame of a session."""
    return change_rows(spark, store, plan_changes(state, **asked), net=net)

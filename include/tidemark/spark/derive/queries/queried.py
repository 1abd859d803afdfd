"""What a definition's queries give over the inputs, each under its name."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from tidemark.spark.derive.analysis import analysed
from tidemark.spark.derive.under_names import called
from tidemark.spark.derive.views import Views


def queried(views: Views, frames: Mapping[str, DataFrame], query: str) -> DataFrame:
    """A query over some views."""
    with called(frames):
        return analysed(views.spark, views.computation.name, query)

"""Operators, groups, assets and the DAG factory. The only package that imports airflow.

Everything public is here, and is imported when it is first asked for: a DAG file that only waits for an asset does not
load the operators, and nothing at parse loads pyspark or Great Expectations.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tidemark.errors import require

require("airflow", "airflow")

if TYPE_CHECKING:
    from tidemark.airflow.app_operator import AppOperator
    from tidemark.airflow.arrivals import batches_dag
    from tidemark.airflow.asset import asset_of, intervals_asset_of
    from tidemark.airflow.collection_files import check_collection_files
    from tidemark.airflow.factory import collection_dags, tidemark_dag
    from tidemark.airflow.groups import compact_group, drain_group, ingest_group, seal_group, step_group
    from tidemark.airflow.handed import tidemark_task, with_as_of, with_changes
    from tidemark.airflow.hold import HoldOperator, ReleaseHoldOperator
    from tidemark.airflow.maintenance import MaintenanceOperator, maintenance_dag, maintenance_group
    from tidemark.airflow.notify import Notice
    from tidemark.airflow.on_time import OnTimeOperator
    from tidemark.airflow.publish import PublishOperator
    from tidemark.airflow.task_group import TidemarkTaskGroup
    from tidemark.airflow.wait import wait_for_seal
    from tidemark.airflow.window import intervals_of, sealed_by, window_of

_HOME = {
    "AppOperator": "app_operator",
    "HoldOperator": "hold",
    "MaintenanceOperator": "maintenance",
    "Notice": "notify",
    "OnTimeOperator": "on_time",
    "PublishOperator": "publish",
    "ReleaseHoldOperator": "hold",
    "TidemarkTaskGroup": "task_group",
    "asset_of": "asset",
    "batches_dag": "arrivals",
    "check_collection_files": "collection_files",
    "collection_dags": "factory",
    "compact_group": "groups",
    "drain_group": "groups",
    "ingest_group": "groups",
    "intervals_asset_of": "asset",
    "intervals_of": "window",
    "maintenance_dag": "maintenance",
    "maintenance_group": "maintenance",
    "seal_group": "groups",
    "sealed_by": "window",
    "step_group": "groups",
    "tidemark_dag": "factory",
    "tidemark_task": "handed",
    "wait_for_seal": "wait",
    "window_of": "window",
    "with_as_of": "handed",
    "with_changes": "handed",
}

__all__ = [
    "AppOperator",
    "HoldOperator",
    "MaintenanceOperator",
    "Notice",
    "OnTimeOperator",
    "PublishOperator",
    "ReleaseHoldOperator",
    "TidemarkTaskGroup",
    "asset_of",
    "batches_dag",
    "check_collection_files",
    "collection_dags",
    "compact_group",
    "drain_group",
    "ingest_group",
    "intervals_asset_of",
    "intervals_of",
    "maintenance_dag",
    "maintenance_group",
    "seal_group",
    "sealed_by",
    "step_group",
    "tidemark_dag",
    "tidemark_task",
    "wait_for_seal",
    "window_of",
    "with_as_of",
    "with_changes",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)

"""Airflow takes plugins from files of this folder; of an installed Tidemark it finds the plugin without this file."""

from tidemark.airflow.plugin import TidemarkPlugin

__all__ = ["TidemarkPlugin"]

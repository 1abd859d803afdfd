"""Buttons on a task's page."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink

PREFIX = "/tidemark"
"""Where the plugin's pages are, below the address of the API server."""


class DataDocsLink(BaseOperatorLink):
    """To the page of a gate's last failure: the failing rows, and Great Expectations' Data Docs."""

    @property
    def name(self) -> str:
        return "Data docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return f"{PREFIX}/gates/{operator.place.name}/{operator.gate}"

"""Buttons on a task's page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from airflow.sdk import BaseOperatorLink

PREFIX = "/tidemark"
"""Where the plugin's pages are, below the address of the API server."""


BATCHES = ".batches"
"""What the id of the DAG of a collection's batches ends with: no collection's name does."""


class DataDocsLink(BaseOperatorLink):
    """To the page of what this try of this gate task found, whether it passed or failed."""

    @property
    def name(self) -> str:
        return "Data docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        page = f"{PREFIX}/gates/{operator.location.name}/{operator.gate}"
        if ti_key is None:
            return page
        index = getattr(ti_key, "map_index", None)
        which = {
            "run": ti_key.run_id,
            "task": ti_key.task_id,
            "index": -1 if index is None else index,
            "try": ti_key.try_number,
        }
        return f"{page}?{urlencode(which)}"

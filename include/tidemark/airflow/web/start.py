"""A button that starts something in Airflow. The server only shows it.

The button's script (start.js) asks Airflow's own API, with the login of whoever clicks, so Airflow judges whether they
may.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tidemark.airflow.web.markup import Markup, tag


@cache
def script() -> str:
    """The one script that pages have: one button of a page starts something."""
    return (Path(__file__).parent / "start.js").read_text()


@dataclass(frozen=True)
class Start:
    """What a button starts.

    Attributes:
        what: What the page calls it, once it has begun.
        id: The field of Airflow's answer that names it.
        path: Where Airflow's API takes the request, below `/api/v2`.
        dag_id: The DAG that runs.
        up: The way from the page to the address of the API server.
    """

    what: str
    id: str
    path: str
    dag_id: str
    up: str

    def button(self, label: str, request: Mapping[str, Any]) -> Markup:
        """The button, with the request that its script sends, and the place of what came of it."""
        api = f"{self.up}/api/v2"
        data = {
            "data-request": json.dumps(request),
            "data-api": f"{api}/{self.path}",
            "data-dag": f"{api}/dags/{self.dag_id}",
            "data-what": self.what,
            "data-id": self.id,
        }
        return tag("span", tag("button", label, type="button", **data), " ", tag("output"))


def unpause(why: str) -> Iterator[Markup]:
    """What Airflow's own dialog offers: a DAG that is paused begins none of its runs."""
    box = tag("input", type="checkbox", id="unpause", checked="checked")
    yield tag("p", tag("label", box, f" The DAG is paused, and begins no run before it is not: unpause it, too{why}"))

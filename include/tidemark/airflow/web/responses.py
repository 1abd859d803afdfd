"""What routes answer with, and what they take."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import HTMLResponse

from tidemark.airflow.web.page import Page

LONGEST = 500
"""Characters of a run's or a task's id: Airflow allows 250."""
Text = Annotated[str, Query(max_length=LONGEST)]


def html(page: Page, status: int = 200) -> HTMLResponse:
    """A page under its policy."""
    return HTMLResponse(page.html, status, headers={"Content-Security-Policy": page.policy})

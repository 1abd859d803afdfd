"""Plugins load in every Airflow process; the pages' code loads in the one that serves them, when they are asked for."""

from __future__ import annotations

from typing import Any


class LazyApp:
    """An ASGI app that builds the real one with its first request."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            from tidemark.airflow.web.app import create_app

            self._app = create_app()
        await self._app(scope, receive, send)

"""Tidemark keeps a changing dataset exact: files of changes become a durable collection of updates on Parquet.

    import tidemark

    flights = tidemark.open("s3://lake/collections", "flights")
    flights.as_of("2013-01-03T12:00:00Z", columns=["flight", "status"]).to_pandas()
    flights.changes(after="2013-01-02", upto="2013-01-03").to_arrow()

docs/how-to/read-from-python.md goes through it. Importing this imports nothing else; what is used is imported then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.api.answer import Answer
    from tidemark.api.appender import Appender, LandedChunk
    from tidemark.api.appending import appender
    from tidemark.api.hold import Hold
    from tidemark.api.opened import OpenCollection
    from tidemark.api.opening import collections, open
    from tidemark.api.sql.asking import sql
    from tidemark.datasource.views import register
    from tidemark.errors import (
        CommitUnknown,
        Contention,
        Corruption,
        DataRefused,
        FileRefused,
        GateFailed,
        InvalidUsage,
        MissingExtra,
        NotReady,
        TidemarkError,
        Unavailable,
        UpgradeRequired,
    )

__version__ = "0.7.0.dev0"

__all__ = [
    "Answer",
    "Appender",
    "CommitUnknown",
    "Contention",
    "Corruption",
    "DataRefused",
    "FileRefused",
    "GateFailed",
    "Hold",
    "InvalidUsage",
    "LandedChunk",
    "MissingExtra",
    "NotReady",
    "OpenCollection",
    "TidemarkError",
    "Unavailable",
    "UpgradeRequired",
    "__version__",
    "appender",
    "collections",
    "open",
    "register",
    "sql",
]

_ELSEWHERE = {
    "open": "tidemark.api.opening",
    "sql": "tidemark.api.sql.asking",
    "appender": "tidemark.api.appending",
    "Appender": "tidemark.api.appender",
    "LandedChunk": "tidemark.api.appender",
    "collections": "tidemark.api.opening",
    "OpenCollection": "tidemark.api.opened",
    "Answer": "tidemark.api.answer",
    "Hold": "tidemark.api.hold",
    "register": "tidemark.datasource.views",
}
"""Where the names above are, but for errors."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tidemark' has no attribute {name!r}")
    from tidemark.imports import uncollected

    with uncollected():
        found = getattr(import_module(_ELSEWHERE.get(name, "tidemark.errors")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

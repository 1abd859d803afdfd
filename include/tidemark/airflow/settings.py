"""Where things are, as the environment says (tools/env.sh, docker-compose.yaml): read at parse, no IO."""

from __future__ import annotations

import os
from datetime import timedelta
from enum import StrEnum

from tidemark.config import environment
from tidemark.config.folder import collections_folder as collections_folder
from tidemark.config.folder import home as home
from tidemark.errors import InvalidUsage
from tidemark.model.instant import MICROSECOND, parse_duration
from tidemark.model.interval import INTERVALS_OF_RUN


def root() -> str:
    """Where collections live, a path or s3://bucket/prefix: TIDEMARK_ROOT."""
    return os.environ.get("TIDEMARK_ROOT") or str(home() / ".tidemark" / "collections")


def landing() -> str:
    """Where change files arrive: TIDEMARK_LANDING."""
    return os.environ.get("TIDEMARK_LANDING") or str(home() / ".tidemark" / "landing")


def landings() -> list[str]:
    """Folders and s3 prefixes, beside TIDEMARK_LANDING, within which a run's param `landing` may point:
    TIDEMARK_LANDINGS, with commas between them."""
    return [location.strip() for location in os.environ.get("TIDEMARK_LANDINGS", "").split(",") if location.strip()]


def functions() -> list[str]:
    """Folders, beside those of DAGs, plugins and `include`, with modules that collection files may name.

    TIDEMARK_FUNCTIONS, with commas between them.
    """
    return [folder.strip() for folder in os.environ.get("TIDEMARK_FUNCTIONS", "").split(",") if folder.strip()]


def spark_master() -> str | None:
    """The Spark master of a deployment without a connection `spark_default`: TIDEMARK_SPARK_MASTER; None: it needs one.

    No connection in the environment, because that would go before the one a user makes in the UI.
    """
    return os.environ.get("TIDEMARK_SPARK_MASTER") or None


def launcher(chosen: str | None = None) -> str:
    """How apps that read data are run: `chosen`, else TIDEMARK_LAUNCHER, else `submit`."""
    return chosen or os.environ.get("TIDEMARK_LAUNCHER") or "submit"


SPARK_WHEN = ("auto", "always")
"""When Spark is asked: for what reads much, or for all that reads data."""


def spark_when(chosen: str | None = None) -> str | None:
    """`chosen`, else TIDEMARK_SPARK_WHEN: one of SPARK_WHEN; None: as the master suggests. InvalidUsage for another."""
    said = chosen or (os.environ.get("TIDEMARK_SPARK_WHEN") or "").strip().lower() or None
    if said not in (None, *SPARK_WHEN):
        raise InvalidUsage(f"TIDEMARK_SPARK_WHEN must be {' or '.join(SPARK_WHEN)}, not {said!r}")
    return said


def ready_within() -> timedelta:
    """How long after an interval's end its files are waited for: TIDEMARK_READY_WITHIN, as 12h or 30m."""
    return environment.ready_within() * MICROSECOND


def backfill_intervals() -> int:
    """How many intervals a run of a backfill is about at most: TIDEMARK_BACKFILL_INTERVALS, 31 without it."""
    text = os.environ.get("TIDEMARK_BACKFILL_INTERVALS") or str(INTERVALS_OF_RUN)
    if not text.isascii() or not text.isdigit():
        raise InvalidUsage(f"TIDEMARK_BACKFILL_INTERVALS is {text!r}; write a whole number, such as 31")
    return int(text)


def gate_asks() -> bool:
    """Whether a gate that fails asks what to do: TIDEMARK_GATE_ASKS, `on` (which it is by default) or `off`.

    InvalidUsage for anything else.
    """
    said = (os.environ.get("TIDEMARK_GATE_ASKS") or "on").strip().lower()
    if said not in ("on", "off"):
        raise InvalidUsage(f"TIDEMARK_GATE_ASKS must be on or off, not {said!r}")
    return said == "on"


class RowsFor(StrEnum):
    """Whom the pages in Airflow show rows of collections."""

    NOBODY = "nobody"
    READERS = "readers"
    EDITORS = "editors"

    @property
    def words(self) -> str:
        """For whom they are, in a sentence."""
        return "shown to nobody" if self is RowsFor.NOBODY else f"for {_OF_DAG[self]} its DAG"


_OF_DAG = {RowsFor.READERS: "who may read", RowsFor.EDITORS: "who may edit"}


def rows_for() -> RowsFor:
    """Who sees rows on the pages in Airflow: TIDEMARK_ROWS_FOR, `editors` of the collection's DAG (without it),
    `readers` of it, or `nobody`. InvalidUsage for anything else."""
    said = (os.environ.get("TIDEMARK_ROWS_FOR") or RowsFor.EDITORS).strip().lower()
    if said not in list(RowsFor):
        raise InvalidUsage(f"TIDEMARK_ROWS_FOR must be {', '.join(RowsFor)}; it is {said!r}")
    return RowsFor(said)


def response_timeout() -> timedelta:
    """How long a gate waits for an answer, or for a mended file: TIDEMARK_RESPONSE_TIMEOUT, as 1d or 8h."""
    return parse_duration(os.environ.get("TIDEMARK_RESPONSE_TIMEOUT") or "1d") * MICROSECOND

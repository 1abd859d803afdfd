"""A DuckDB that reaches nothing but the tables it is given."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, TypeVar

import duckdb
import pyarrow.dataset as ds

from tidemark.api.sql import interrupts
from tidemark.api.sql.statement import outer_words
from tidemark.errors import InvalidUsage, plain_line
from tidemark.model.instant import format_duration

T = TypeVar("T")

HEARD_S = 0.5
"""How often it is looked whether there was an interrupt that nobody raised."""
CLAUSES = {"select", "from", "where", "group", "having", "limit", "join", "on", "using", "as", "and", "or", "by"}
"""Words at which DuckDB stops over what is written before them."""
WRITING = {"copy", "create", "delete", "explain", "insert", "merge", "update"}
"""Words that, outside of parentheses, make no SELECT of a statement with a PIVOT in it."""


class _OutOfTimeError(Exception):
    """A statement is not done at the end of its time."""


@dataclass(frozen=True)
class Limits:
    """What a statement may take.

    Attributes:
        memory: Bytes that DuckDB may have of what it computes with.
        seconds: Time in which it is computed; what is done with its rows meanwhile does not count.
    """

    memory: int
    seconds: float = inf


class Database:
    """One connection to a database in memory, within limits; what does not fit goes into a folder of its own, if it
    can. Closed when it is not used any more, or by `close`: then the folder is gone, too."""

    def __init__(self, limits: Limits) -> None:
        folder = tempfile.mkdtemp(prefix="tidemark-sql-")
        settings: dict[str, Any] = {
            "memory_limit": f"{limits.memory}B",
            "temp_directory": folder,
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        }
        self._interrupts = interrupts.count()
        self._limits, self._left = limits, limits.seconds
        self.connection = duckdb.connect(":memory:", config=settings)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=folder)
        self._closed = weakref.finalize(self, _close, self.connection, self._pool, folder)

    def hold(self, tables: Mapping[str, ds.Dataset]) -> None:
        """Give it its tables, and lock it: from here on no file and no network can be reached, and no setting
        changed."""
        for name, dataset in tables.items():
            self.connection.register(name, dataset)
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def check_select(self, text: str) -> None:
        """InvalidUsage for what DuckDB cannot read, for several statements, and for one that does anything but read."""
        try:
            found = self.connection.extract_statements(text)
        except duckdb.Error as error:
            raise InvalidUsage(in_one_line(error)) from None
        if not found:
            raise InvalidUsage("the statement is empty; write a SELECT")
        if len(found) > 1:
            raise InvalidUsage(f"there are {len(found)} statements; ask one at a time")
        kind = _kind_of(found[0], text)
        if kind != "SELECT":
            raise InvalidUsage(f"{kind} is not asked here: only SELECT reads, and nothing else is allowed")

    def run(self, work: Callable[[], T]) -> T:
        """What a piece of work on the connection gives. An interrupt ends it, also one that comes while it is begun, or
        that was counted since the database was made, and dropped: DuckDB itself does not look for one. So does the end
        of its time: that is InvalidUsage."""
        began = monotonic()
        try:
            return self._waited_for(self._pool.submit(work), began + self._left)
        except KeyboardInterrupt:
            _stop(self.connection, self._pool)
            self._interrupts = interrupts.count()
            raise
        except _OutOfTimeError:
            _stop(self.connection, self._pool)
            seconds = format_duration(round(self._limits.seconds * 1e6))
            raise InvalidUsage(
                f"the statement was computed for {seconds} and is not done; give it more time, or ask for less"
            ) from None
        finally:
            self._left -= monotonic() - began

    def _waited_for(self, future: Future[T], deadline: float) -> T:
        while True:
            try:
                return future.result(timeout=max(0.0, min(HEARD_S, deadline - monotonic())))
            except TimeoutError:
                if future.done():
                    return future.result()
                if interrupts.count() > self._interrupts:
                    raise KeyboardInterrupt from None
                if monotonic() >= deadline:
                    raise _OutOfTimeError from None

    def close(self) -> None:
        """Give back what it holds."""
        self._closed()


def _kind_of(statement: duckdb.Statement, text: str) -> str:
    """Name what a statement does.

    DuckDB reads a statement with a PIVOT without IN as several, which find its columns first; and it has kinds of
    statements that its Python does not know.
    """
    try:
        kind = statement.type.name
    except ValueError:
        kind = "MULTI"
    if kind != "MULTI":
        return str(kind)
    return next((word.upper() for word in outer_words(text) if word in WRITING), "SELECT")


def _stop(connection: duckdb.DuckDBPyConnection, pool: ThreadPoolExecutor) -> None:
    """End what the one thread of a pool does on a connection."""
    idle = pool.submit(lambda: None)
    # More than once: DuckDB forgets an interrupt that comes before its query has begun.
    while not idle.done():
        connection.interrupt()
        wait([idle], timeout=0.1)


def _close(connection: duckdb.DuckDBPyConnection, pool: ThreadPoolExecutor, folder: str) -> None:
    """Also where a collection of garbage calls it, in the midst of anything: no lock that others hold is taken."""
    pool.shutdown(wait=False, cancel_futures=True)
    # Its own thread may be the last to let go of a database; it does nothing else then, and cannot wait for itself.
    own = threading.current_thread()
    while working := [one for one in threading.enumerate() if one.name.startswith(folder) and one is not own]:
        connection.interrupt()
        working[0].join(timeout=0.1)
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)


def in_one_line(error: Exception) -> str:
    """What DuckDB says of a statement, without the part of it that it shows, which may be one of ours."""
    said = plain_line(" ".join(str(error).split("\n\nLINE ")[0].split()))
    _, found, word = said.partition('syntax error at or near "')
    word = word.rstrip('"')
    is_name = found and word.isidentifier() and word.lower() not in CLAUSES
    return f"{said}; if {word} is a name, write it in double quotes" if is_name else said

"""Asking in SQL, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemark.api.opening import address_of
from tidemark.api.times import Duration, Time, lasting, micros
from tidemark.errors import InvalidUsage, require
from tidemark.jobs.queries import locate
from tidemark.model.byte_count import byte_count

if TYPE_CHECKING:
    from tidemark.api.sql.answer import SqlAnswer

VARIABLE = "TIDEMARK_SQL_MEMORY"
DEFAULT = "1GiB"
LEAST = 32 * 2**20
"""Below this DuckDB cannot do anything useful."""
TIMEOUT = "TIDEMARK_SQL_TIMEOUT"
DEFAULT_TIMEOUT = "1h"
# Longer than anybody waits for an answer, and short enough that a statement which was left alone ends the same day.


def sql(
    root: str | os.PathLike[str],
    statement: str,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    memory: str | int | None = None,
    timeout: Duration | None = None,
    committed: Time | None = None,
) -> SqlAnswer:
    """Ask the collections below `root` in SQL: one SELECT of DuckDB's, in which each collection is a table.

        tidemark.sql("lake/collections", "SELECT carrier, avg(delay_min) FROM flights GROUP BY ALL").to_pandas()

    All collections are opened as the statement begins, so that joins see one moment. A row with a higher multiplicity
    is several rows. Earlier states and what was learned are tables, too:

        flights FOR TIMESTAMP AS OF '2013-01-03'        as known then; also AT (TIMESTAMP => '2013-01-03')
        flights FOR VERSION AS OF 12                    at that version
        flights FOR COMMITTED AS OF '2024-05-14T09:00Z' as was known at that time of the wall clock
        as_of('flights', time, event_time)              as known at a time, of what had happened by another
        changes('flights', after, upto)                 what was learned, in the columns of `changes`; net => TRUE
        windows('delays_by_hour', time)                 the windows with their revisions; open => TRUE
        latest_at('flights', 'scheduled_at', t)         the latest row of each key; within => '6h'

    With `committed`, a time of the wall clock, each table that says no other time has the rows that it had then.

    `parameters` are values for `?` or `$name`. The statement reaches no file and no network. DuckDB uses `memory` at
    most (`"2GiB"`, or bytes; without it what TIDEMARK_SQL_MEMORY says, 1GiB if it says nothing). It does not count
    single values of hundreds of megabytes; the command `tidemark sql` refuses these, too. A statement is computed for
    `timeout` at most (`"30s"`, or a timedelta; without it what TIDEMARK_SQL_TIMEOUT says, 1h if it says nothing).

    Raises InvalidUsage for what is no SELECT, for one that takes more memory or time, with the nearest name for a table
    that there is not, and as `as_of` for times; MissingExtra without the extra `sql`.
    """
    require("duckdb", "sql")
    from tidemark.api.sql.answer import SqlAnswer
    from tidemark.api.sql.database import Limits
    from tidemark.api.sql.statement import parsed

    if not isinstance(statement, str):
        raise InvalidUsage(f"the statement is {statement!r} ({type(statement).__name__}); write text")
    limits = Limits(memory_limit(memory), _seconds(timeout))
    address = address_of(root)
    locate.check_root(address)
    then = None if committed is None else micros(committed, "committed")
    return SqlAnswer(address, replace(parsed(statement), committed=then), parameters, limits)


def memory_limit(memory: str | int | None) -> int:
    """Return the bytes that a statement may take, by an argument or, where it is None, by the environment."""
    given = os.environ.get(VARIABLE, DEFAULT) if memory is None else memory
    where = VARIABLE if memory is None else "memory"
    found = given if isinstance(given, int) and not isinstance(given, bool) else byte_count(str(given))
    if found is None or found < LEAST:
        raise InvalidUsage(f"{where} is {given!r}; write at least {LEAST // 2**20}MiB, such as 2GiB")
    return found


def _seconds(timeout: Duration | None) -> float:
    """Return how long a statement may be computed. InvalidUsage for what is no time, or none at all."""
    where, duration = (
        ("timeout", timeout) if timeout is not None else (TIMEOUT, os.environ.get(TIMEOUT, DEFAULT_TIMEOUT))
    )
    try:
        seconds = lasting(duration, where) / 1e6
    except InvalidUsage as error:
        raise InvalidUsage(f"{where}: {error}") from None
    if not seconds:
        raise InvalidUsage(f"{where} is {duration!r}; write how long a statement may take, as 30s or 2h")
    return seconds

"""Asking in SQL, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.api.opening import address_of
from tidemark.errors import InvalidUsage, require
from tidemark.jobs.queries import locate
from tidemark.model.byte_count import byte_count

if TYPE_CHECKING:
    from tidemark.api.sql.answer import SqlAnswer

VARIABLE = "TIDEMARK_SQL_MEMORY"
DEFAULT = "1GiB"
LEAST = 32 * 2**20
"""Below this DuckDB cannot do anything useful."""


def sql(
    root: str | os.PathLike[str],
    statement: str,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    memory: str | int | None = None,
) -> SqlAnswer:
    """Ask the collections below `root` in SQL: one SELECT of DuckDB's, in which each collection is a table.

        tidemark.sql("lake/collections", "SELECT carrier, avg(delay_min) FROM flights GROUP BY ALL").to_pandas()

    All collections are opened as the statement begins, so that joins see one moment. A row with a higher multiplicity
    is several rows. Earlier states and what was learned are tables, too:

        flights FOR TIMESTAMP AS OF '2013-01-03'        as known then; also AT (TIMESTAMP => '2013-01-03')
        flights FOR VERSION AS OF 12                    at that version
        as_of('flights', time, event_time)              as known at a time, of what had happened by another
        changes('flights', after, upto)                 what was learned, in the columns of `changes`; net => TRUE
        windows('delays_by_hour', time)                 the windows with their revisions; open => TRUE
        latest_at('flights', 'scheduled_at', t)         the latest row of each key; within => '6h'

    `parameters` are values for `?` or `$name`. The statement reaches no file and no network, and uses `memory` at most
    (`"2GiB"`, or bytes; without it what TIDEMARK_SQL_MEMORY says, 1GiB if it says nothing).

    Raises InvalidUsage for what is no SELECT, with the nearest name for a table that there is not, and as `as_of` for
    times; MissingExtra without the extra `sql`.
    """
    require("duckdb", "sql")
    from tidemark.api.sql.answer import SqlAnswer
    from tidemark.api.sql.statement import parsed

    if not isinstance(statement, str):
        raise InvalidUsage(f"the statement is {statement!r} ({type(statement).__name__}); write text")
    limit = _bytes(memory)
    address = address_of(root)
    locate.check_root(address)
    return SqlAnswer(address, parsed(statement), parameters, limit)


def _bytes(memory: str | int | None) -> int:
    given = os.environ.get(VARIABLE, DEFAULT) if memory is None else memory
    where = VARIABLE if memory is None else "memory"
    found = given if isinstance(given, int) and not isinstance(given, bool) else byte_count(str(given))
    if found is None or found < LEAST:
        raise InvalidUsage(f"{where} is {given!r}; write at least {LEAST // 2**20}MiB, such as 2GiB")
    return found

"""A statement of SQL asked from a shell, and its rows shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tidemark.cli.command import Call
from tidemark.cli.read import Shape, show
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.api.sql.answer import SqlAnswer


def asked(
    call: Call, statement: str, memory: str | None, timeout: str | None, committed: int | None = None
) -> SqlAnswer:
    """A statement, asked of the root."""
    from tidemark.api.sql.asking import sql

    return sql(call.root, statement, memory=memory, timeout=timeout, committed=committed)


def shown(call: Call, answer: SqlAnswer, limit: int | None, shape: Shape) -> None:
    """The rows of an answer as they are asked for."""
    show(call, Shown(answer), limit, shape, about(answer), f"of {described(answer)}" if answer.versions else "")


class Shown:
    """The rows of an answer in types that are shown."""

    def __init__(self, answer: SqlAnswer) -> None:
        self._answer = answer
        self.schema = answer.schema

    def __iter__(self) -> Iterator[pa.Table]:
        import pyarrow as pa

        from tidemark.arrow.rows.shown import as_shown

        return (_whole(as_shown(pa.Table.from_batches([batch]))) for batch in self._answer)


def _whole(table: pa.Table) -> pa.Table:
    """The same with whole numbers for what DuckDB calls HUGEINT, such as the sum of a column of them, as far as they
    are no larger than others."""
    import pyarrow as pa

    for at, column in enumerate(table.schema):
        if pa.types.is_decimal128(column.type) and (column.type.precision, column.type.scale) == (38, 0):
            with suppress(pa.ArrowInvalid):
                table = table.set_column(at, column.name, table.column(at).cast(pa.int64()))
    return table


def about(answer: SqlAnswer) -> dict[str, Any]:
    """What was read for an answer."""
    below = answer.complete_below
    text = None if below is None else format_instant(below)
    return {"collections": answer.versions, "complete_below": below, "complete_below_text": text}


def described(answer: SqlAnswer) -> str:
    """The same for people."""
    read = ", ".join(f"{name} at version {version}" for name, version in answer.versions.items())
    below = answer.complete_below
    return f"{read}, complete below {format_instant(below)}" if below else f"{read or 'no collection'}"

"""Collections and answers as a notebook shows them: HTML, in which all text is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.arrow.rows.plain import plain_rows
from tidemark.arrow.rows.shown import as_shown
from tidemark.errors import shortened
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    from tidemark.jobs.queries.history import Entry
    from tidemark.model.arrangement import Arrangement

ROWS, COLUMNS, LETTERS = 10, 50, 100
"""What is shown of rows: how many, how many of their columns, and how many characters of a value."""


def of_collection(state: Arrangement, version: int, last: Entry | None) -> str:
    """What a collection is: columns, frontiers, how many updates it has, and its last change."""
    of = state.collection
    columns = [
        (
            column.name,
            str(column.type),
            "key" if column in of.key else "value",
            "timeline" if column.name in of.timelines else "",
        )
        for column in (*of.key, *of.value)
    ]
    facts: list[tuple[str, object]] = [
        ("complete below", f"{format_instant(state.complete_below)}: no row on time is missing"),
        ("known up to", f"{format_instant(state.seal)}: what was learned is final"),
        ("readable from", format_instant(state.since)),
        ("updates", f"{sum(b.rows for b in state.trace) + sum(b.rows for b in state.unsealed):,}"),
    ]
    if last is not None:
        facts.append(("last change", f"{format_instant(last.written_at)}: {last.change}"))
    heading = f"<b>{escape(of.name)}</b>, version {version}"
    return f"{heading}{_table(('column', 'type', 'of the', ''), columns)}{_table((), facts)}"


def of_rows(found: pa.Table, described: str) -> str:
    """The first `ROWS` of some rows, below what they answer."""
    found = as_shown(found)
    names = found.column_names[:COLUMNS]
    lines = plain_rows(found.slice(0, ROWS).select(names))
    more = ["more rows"] if found.num_rows > ROWS else []
    more += [f"{len(found.column_names) - COLUMNS} more columns"] if len(found.column_names) > COLUMNS else []
    note = f"<p>and {' and '.join(more)}</p>" if more else ""
    return f"<p>{escape(described)}</p>{_table(names, lines)}{note}"


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>" if names else ""
    lines = ("".join(f"<td>{_cell(value)}</td>" for value in row) for row in rows)
    return f"<table>{head}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: Any) -> str:
    return "<i>null</i>" if value is None else escape(shortened(str(value), LETTERS))

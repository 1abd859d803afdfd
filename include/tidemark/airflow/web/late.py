"""Some late rows of an interval, for its page: why each was late, by how much, and what became of it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from tidemark.airflow.web.markup import Markup, tag, with_commands
from tidemark.airflow.web.page import table
from tidemark.errors import plain_line
from tidemark.jobs.queries.late import late_rows
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import MASKED
from tidemark.model.instant import format_duration, format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry
from tidemark.model.local_time import format_local
from tidemark.model.wording import counted
from tidemark.storage.stores.store import ObjectStore

MOST_ROWS, MOST_COLUMNS, MOST_LETTERS = 20, 12, 80
"""What a page shows of late rows: rows, columns of each, and characters of a value."""
MOST_BYTES = 4 * 2**20
"""Bytes of late rows that are read for a page: it is served by the process that serves all of Airflow's."""


def late_section(
    store: ObjectStore, state: Arrangement, interval: Interval, entries: Sequence[LedgerEntry]
) -> list[Markup]:
    """The section about an interval's late rows; nothing where it has none. Rows of more than MOST_BYTES are not read,
    and the command that lists them is named."""
    late = [entry for entry in entries if entry.rows_late_applied + entry.rows_late_discarded]
    if not late:
        return []
    heading = tag("h2", "Late rows")
    count = sum(entry.rows_late_applied + entry.rows_late_discarded for entry in late)
    span = (
        f"--lower {format_local(interval.lower, interval.zone)} --upper {format_local(interval.upper, interval.zone)}"
    )
    command = f"`tidemark late {state.collection.name} {span}`"
    if sum(entry.late.bytes for entry in late if entry.late is not None) > MOST_BYTES:
        said = f"{counted(count, 'row')}, too many for a page: {command}"
        return [tag("section", heading, tag("p", with_commands(said)))]
    found = late_rows(store, state, intervals=[interval], limit=MOST_ROWS).rows
    header, lines = _shown(found, state.collection.unshown)
    more = [tag("p", with_commands(f"{count - len(found):,} more: {command}"))] if count > len(found) else []
    return [tag("section", heading, table(header, lines), *more)] if found else []


def _shown(rows: Sequence[dict[str, Any]], masked: Container[str]) -> tuple[list[str], list[list[object]]]:
    """Headings, and a line of each row: its fate first, then what it said, but for `masked` columns."""
    own = [name for name in (rows[0] if rows else ()) if not name.startswith("_")][:MOST_COLUMNS]
    header = ["why", "late by", "happened", "applied", *own]
    return header, [
        [*_fate(row, masked), *(MASKED if name in masked else _text(row[name]) for name in own)] for row in rows
    ]


def _fate(row: dict[str, Any], masked: Container[str]) -> list[object]:
    replayed = row["_replayed_by"]
    applied = "yes" if row["_applied"] else f"by replay {replayed[:12]}" if replayed else "no, a dead letter"
    late_by = "" if row["_lateness"] is None else format_duration(row["_lateness"] // 1_000_000 * 1_000_000)
    times = {"_lateness": late_by, "_original_event_time": format_instant(row["_original_event_time"])}
    return [row["_reason"], *(MASKED if name in masked else said for name, said in times.items()), applied]


def _text(value: object) -> object:
    return None if value is None else plain_line(str(value), MOST_LETTERS)

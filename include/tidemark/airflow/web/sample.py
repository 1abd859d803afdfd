"""Some rows of an answer as a table of a page: a bounded look, without the values of masked columns."""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa

from tidemark.airflow.web.markup import Markup, tag, with_commands
from tidemark.airflow.web.page import table
from tidemark.api.answer import Answer
from tidemark.arrow.rows.plain import plain_rows
from tidemark.errors import plain_line
from tidemark.model.collection import MASKED
from tidemark.model.instant import format_instant

MOST_ROWS, MOST_COLUMNS, MOST_LETTERS = 50, 40, 80
"""What a page shows of an answer: rows, columns, and characters of a value."""
MOST_BYTES = 32 * 2**20
"""Bytes, compressed, that are read at most for rows that are looked for: the process that reads them serves all of
Airflow's pages."""
MOST_BATCHES = 16
"""Batches of an answer in which rows are looked for; the first ones of many an answer have none."""

_SAID = {
    "_change_type": "change",
    "_commit_timestamp": "known",
    "_event_time": "happened",
    "_multiplicity": "times",
    "diff": "diff",
}
"""What columns of Tidemark's own are called on a page; those that are not here are left out."""


def first_rows(answer: Answer, masked: Container[str] = ()) -> Markup:
    """The first rows of an answer, in its order; a line that says so where there are none, or more."""
    rows = list(islice(_some(answer), MOST_ROWS + 1))
    if not rows:
        return tag("p", "No rows.", class_="quiet")
    names = [name for name in rows[0] if not name.startswith("_") and name != "diff"]
    times = {field.name for field in answer.schema if pa.types.is_timestamp(field.type)} | {"_event_time"}
    own = [name for name in _SAID if name in rows[0] and not (name == "_multiplicity" and _all_once(rows))]
    shown = [*own, *names[:MOST_COLUMNS]]
    lines = [[_cell(name, row[name], masked, is_time=name in times) for name in shown] for row in rows[:MOST_ROWS]]
    notes = [f"the first {MOST_ROWS} rows, in order of the key"] if len(rows) > MOST_ROWS else []
    notes += [f"the first {MOST_COLUMNS} of {len(names)} columns"] if len(names) > MOST_COLUMNS else []
    said = [tag("p", "; ".join(notes), class_="quiet")] if notes else []
    return tag("div", table([_SAID.get(name, name) for name in shown], lines), *said, class_="wide")


def rows_within(answer: Answer, masked: Container[str], command: str) -> Markup:
    """As `first_rows` of an answer for which chunks must be searched; where these have more than MOST_BYTES, the
    command that lists the rows."""
    size = answer.explain().bytes_read
    if size > MOST_BYTES:
        said = (
            f"{max(1, size // 2**20):,} MiB would have to be read for them, which is too much for a page: `{command}`"
        )
        return tag("p", with_commands(said), class_="quiet")
    return first_rows(answer, masked)


def _some(answer: Answer) -> Iterator[Mapping[str, object]]:
    names = answer.schema.names
    for batch in islice(answer, MOST_BATCHES):
        some: pa.RecordBatch = batch.slice(0, MOST_ROWS + 1)
        for values in plain_rows(some):
            yield dict(zip(names, values, strict=True))


def _all_once(rows: Sequence[Mapping[str, object]]) -> bool:
    return all(row["_multiplicity"] == 1 for row in rows)


def _cell(name: str, value: object, masked: Container[str], *, is_time: bool) -> object:
    """A value as text: numbers of a collection are no figures of ours, so a key of 12345 is not 12,345."""
    if value is None:
        return None
    if name in masked:
        return tag("span", MASKED, class_="quiet")
    text = format_instant(value) if is_time and isinstance(value, int) else plain_line(str(value), MOST_LETTERS)
    return tag("time", text) if is_time else text

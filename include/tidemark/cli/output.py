"""What a command shows: one JSON document, or text for people, on stdout; notes, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TextIO

from tidemark.arrow.rows.csv_text import csv_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH = 100_000
"""Columns of a table that is not shown on a terminal: folding would only hide things from grep."""

MOST_LETTERS = 500
"""Characters of a value that a table shows."""


def console(stream: TextIO) -> Console:
    """A console that takes text as it is: neither markup nor emoji in data or messages means anything."""
    from rich.console import Console

    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False)


def print_json(document: Mapping[str, Any], stream: TextIO) -> None:
    """One document of strict JSON: an infinite or undefined float must have become text before."""
    stream.write(_as_json(document) + "\n")
    stream.flush()


def print_json_rows(
    about: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], count: Callable[[], int], stream: TextIO
) -> None:
    """One document of strict JSON: `about`, then `rows` as they come, then their `count`. Nothing is printed before the
    first row, or the lack of one, is there; memory does not grow with the rows."""
    left = iter(rows)
    first = list(islice(left, 1))
    stream.write(_as_json(about).removesuffix("\n}") + ',\n  "rows": [')
    for at, row in enumerate(chain(first, left)):
        # Within JSON a line break is never part of a text.
        stream.write((",\n    " if at else "\n    ") + _as_json(row).replace("\n", "\n    "))
    stream.write(("\n  ]" if first else "]") + f',\n  "count": {count()}\n}}\n')
    stream.flush()


def _as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)


def print_csv(rows: Iterable[Sequence[object]], stream: TextIO) -> None:
    """Rows as CSV."""
    stream.writelines(map(csv_line, rows))


def note(text: str) -> None:
    """Something worth knowing on the way."""
    print(text, file=sys.stderr, flush=True)


def one_line(message: str) -> str:
    return " ".join(message.split())


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> RenderableType:
    """A table; numbers to the right, None as an empty cell."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for at, heading in enumerate(headings):
        numeric = any(_is_number(row[at]) for row in rows)
        shown.add_column(Text(heading), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell(value)) for value in row))
    return shown


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they stand for, one a line."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in pairs)


def counted(count: int, what: str) -> str:
    """`1 file`, `2,000 files`."""
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{count:,} {what if count == 1 else plural}"


def shortened(value: Any) -> Any:
    """A text for people: its start and its length, if it is so long that nobody would read it in a table."""
    if not isinstance(value, str) or len(value) <= MOST_LETTERS:
        return value
    return f"{value[:MOST_LETTERS]}… ({len(value):,} characters)"


def cell(value: object) -> str:
    """A value as text: thousands separated only where the number is a count, which callers format themselves."""
    return "" if value is None else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(micros: int) -> str:
    """Microseconds as `2d 3h`, `45s`: the two largest units that are not zero."""
    said = []
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("µs", 1)):
        count, micros = divmod(micros, size)
        said += [f"{count}{unit}"] if count else []
    return " ".join(said[:2]) or "0s"


@contextmanager
def working(what: str, total: int | None = None) -> Iterator[Callable[[str, int, int | None], None]]:
    """A spinner, with a bar where `total` is known, on stderr while the body runs; gone afterwards.

    Yields `advance(what, done, total)`. Shows nothing where stderr is not a terminal: notes do.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    shown = console(sys.stderr)
    bars = Progress(
        *columns,
        TimeElapsedColumn(),
        console=shown,
        transient=True,
        disable=not shown.is_terminal,
        redirect_stdout=False,
        redirect_stderr=True,
    )
    with bars:
        task = bars.add_task(what, total=total)

        def advance(now: str, done: int, of: int | None) -> None:
            bars.update(task, description=now, completed=done, total=of)

        yield advance

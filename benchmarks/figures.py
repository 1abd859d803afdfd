"""A table of figures: on the screen and in RESULTS.md it is the same one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

MIB = 2**20


@dataclass(frozen=True)
class Figures:
    """One table: a title, what one must know to read it, headings, rows of text."""

    title: str
    note: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def show(console: Console, figures: Iterable[Figures]) -> None:
    """Print the tables."""
    for held in figures:
        table = Table(title=held.title, title_justify="left", caption=held.note, caption_justify="left", box=None)
        for number, heading in enumerate(held.headings):
            table.add_column(heading, justify="left" if number == 0 else "right")
        for row in held.rows:
            table.add_row(*row)
        console.print(table, "")


def as_markdown(held: Figures) -> list[str]:
    """The lines of the table in RESULTS.md."""
    return [
        f"## {held.title}",
        "",
        held.note,
        "",
        "| " + " | ".join(held.headings) + " |",
        "|---" + "|---:" * (len(held.headings) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in held.rows),
        "",
    ]


def spread(values: Sequence[float], form: str) -> str:
    """The median, and the range if there are several."""
    middle = f"{median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}–{max(values):{form}})"

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
    for one in figures:
        table = Table(title=one.title, title_justify="left", caption=one.note, caption_justify="left", box=None)
        for number, heading in enumerate(one.headings):
            table.add_column(heading, justify="left" if number == 0 else "right")
        for row in one.rows:
            table.add_row(*row)
        console.print(table, "")


def as_markdown(figures: Figures) -> list[str]:
    """The lines of the table in RESULTS.md."""
    return [
        f"## {figures.title}",
        "",
        figures.note,
        "",
        "| " + " | ".join(figures.headings) + " |",
        "|---" + "|---:" * (len(figures.headings) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in figures.rows),
        "",
    ]


def spread(values: Sequence[float], form: str) -> str:
    """The median, and the range if there are several."""
    middle = f"{median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}–{max(values):{form}})"

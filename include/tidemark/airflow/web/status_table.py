"""The table of collections: the status of each, in one line, by whichever column one looks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tidemark.airflow.web.markup import Markup, joined, tag
from tidemark.model.instant import roughly

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: its heading, what it shows of an entry, and what it is sorted by, greatest first."""

    heading: str
    shows: Callable[[Entry, int], object]
    weighs: Callable[[Entry, int], int]


def _number(value: Callable[[Entry], int]) -> dict[str, Callable[[Entry, int], int]]:
    return {"shows": lambda entry, _: value(entry), "weighs": lambda entry, _: value(entry)}


def _behind(entry: Entry, now: int) -> int:
    """How long ago it was that all is complete below; 0 where nothing more is to come."""
    ended = entry["end"] is not None and entry["complete_below"] >= entry["end"]
    begin = max(entry["complete_below"], entry["start"] or 0)
    return 0 if ended or not begin else max(0, now - begin)


def _behind_in_words(entry: Entry, now: int) -> str:
    if entry["end"] is not None and entry["complete_below"] >= entry["end"]:
        return "ended"
    behind = _behind(entry, now)
    return roughly(behind) if behind else "–"


def _overdue(entry: Entry, now: int) -> int:
    return int(bool(entry.get("overdue")))


def _overdue_in_words(entry: Entry, now: int) -> object:
    return tag("span", "overdue", class_="bad", title=entry["overdue"]) if _overdue(entry, now) else "–"


COLUMNS: Mapping[str, Column] = {
    "behind": Column("behind now", _behind_in_words, _behind),
    "overdue": Column("overdue", _overdue_in_words, _overdue),
    "quarantine": Column("in quarantine", **_number(lambda entry: len(entry["quarantine"]))),
    "uncertified": Column("not certified", **_number(lambda entry: len(entry["uncertified"]))),
    "late": Column("late rows", **_number(lambda entry: entry["late_applied"] + entry["late_discarded"])),
    "debt": Column("merges due", **_number(lambda entry: entry["debt"]["compactions"])),
    "rows": Column("rows in the trace", **_number(lambda entry: sum(level["rows"] for level in entry["levels"]))),
}
"""By what an address calls them."""


def status_table(
    entries: Sequence[Entry], now: int, verdict: Callable[[Entry], Markup], *, sort: str = "", after: str = ""
) -> Markup:
    """The table, by name or by the column `sort`. `now` is in µs, and `after` what the page's own address says. Of an
    unknown column the names order it."""
    lines = [entry for entry in entries if "error" not in entry]
    if sort in COLUMNS:
        lines.sort(key=lambda entry: (-COLUMNS[sort].weighs(entry, now), entry["collection"]))
    headings = [_heading("collection", "", sort, after), tag("th", "status")]
    headings += [_heading(column.heading, name, sort, after, number=True) for name, column in COLUMNS.items()]
    rows = [_line(entry, now, verdict) for entry in lines] + [_broken(entry) for entry in entries if "error" in entry]
    table = tag("table", tag("thead", tag("tr", *headings)), tag("tbody", *rows))
    return tag("section", tag("div", table, class_="scroll"))


def _heading(text: str, name: str, sort: str, after: str, *, number: bool = False) -> Markup:
    chosen = name == (sort if sort in COLUMNS else "")
    asked = {key: value for key, value in (("after", after), ("sort", name)) if value}
    inside = tag("b", text) if chosen else tag("a", text, href="?" + urlencode(asked))
    return tag("th", inside, **({"class_": "number"} if number else {}))


def _line(entry: Entry, now: int, verdict: Callable[[Entry], Markup]) -> Markup:
    name = entry["collection"]
    cells = [tag("td", tag("a", name, href=f"collections/{name}")), tag("td", verdict(entry))]
    for column in COLUMNS.values():
        value = column.shows(entry, now)
        cells.append(tag("td", f"{value:,}" if isinstance(value, int) else value, class_="number"))
    return tag("tr", *cells)


def _broken(entry: Entry) -> Markup:
    said = tag("td", entry["error"], colspan=1 + len(COLUMNS), class_="bad")
    return tag("tr", joined([tag("td", entry["collection"]), said]))

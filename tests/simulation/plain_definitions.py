"""Definitions of derived collections known by their text (PLAIN): what each makes of rows, in plain Python, of single
rows, of some keys or of all; and the collections declared by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.rows_read import Row
from tidemark.arrow.rows.schema import DIFF
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.derived import Definition, Derived, Validity
from tidemark.model.instant import MAX_TIME
from tidemark.model.window.close import closes_at
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import AlignedKind, Session
from tidemark.model.window.lateness import judge
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

LEARNED = "_learned"
"""Up to where an input was complete when an update of it came."""
Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Plain:
    """A definition: `whole` of the rows of its inputs; by row, `each` row's own (None: it is not by row); `by`, of each
    input the columns that say which group or join key a row is of, and `group_columns` where D has these; or `reach`,
    the groups that a row is of. A row that is not there at once is `due` from some time on."""

    whole: Callable[[Rows], list[Row]]
    each: Callable[[Row], list[Row]] | None = None
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    group_columns: tuple[str, ...] = ()
    reach: Callable[[Row], list[tuple[Any, ...]]] | None = None
    due: Callable[[Row], int] = lambda row: 0

    def groups(self, name: str, row: Row) -> list[tuple[Any, ...]]:
        """The groups or join keys that a row of an input is of."""
        return self.reach(row) if self.reach else [tuple(row[one] for one in self.by[name])]


BIG = "SELECT k, v FROM tides WHERE v <> 'a'"
BIGGER = "SELECT k, v FROM tides WHERE v <> 'a' AND k > 2"
COUNTS = "SELECT v, count(*) AS n, sum(k) AS total, max(k) AS most FROM tides WHERE v IS NOT NULL GROUP BY v"
SUMS = "SELECT v, count(*) AS n, sum(k) AS total FROM tides GROUP BY v"
TALLIES = "SELECT v, count(*) AS n FROM tides WHERE v IS NOT NULL GROUP BY v"
JOINED = "SELECT tides.k, tides.v AS v, moons.v AS w FROM tides JOIN moons ON tides.k = moons.k"
MEANS = "SELECT v, avg(w) AS mean FROM tides WHERE v IS NOT NULL GROUP BY v"
RANKED = "SELECT k, v, rank() OVER (ORDER BY k) AS place FROM tides WHERE v IS NOT NULL"
SOMETIMES = "SELECT k, v, CASE WHEN v <> 'b' THEN k END AS at FROM tides"
OFFERED = "SELECT k, v, 7 * k AS since FROM tides WHERE v IS NOT NULL"
TOTALS = "SELECT v, sum(w) AS total, max(w) AS most FROM tides GROUP BY v"
TEXTS = "SELECT k, CAST(w AS string) AS t FROM tides"
ALL = "SELECT * FROM tides"
GREAT = "SELECT v, total FROM totals WHERE total > 1"
MET = "SELECT big.k, big.v AS v, counts.n AS n FROM big JOIN counts ON big.v = counts.v"


def _groups(rows: Sequence[Row], name: str) -> Iterator[tuple[Any, list[Row]]]:
    for value in sorted({row[name] for row in rows if row[name] is not None}):
        yield value, [row for row in rows if row[name] == value]


def _sums(given: Rows) -> list[Row]:
    """Null is a group."""
    rows = given["tides"]
    groups = [*_groups(rows, "v"), (None, [row for row in rows if row["v"] is None])]
    return [{"v": v, "n": len(some), "total": sum(row["k"] for row in some)} for v, some in groups if some]


def _counts(given: Rows) -> list[Row]:
    return [
        {"v": v, "n": len(some), "total": sum(row["k"] for row in some), "most": max(row["k"] for row in some)}
        for v, some in _groups(given["tides"], "v")
    ]


def _joined(left: str, right: str, on: tuple[str, str], make: Callable[[Row, Row], Row]) -> Callable[[Rows], list[Row]]:
    def whole(given: Rows) -> list[Row]:
        return [
            make(one, other)
            for one in given[left]
            for other in given[right]
            if one[on[0]] is not None and one[on[0]] == other[on[1]]
        ]

    return whole


def _ranked(given: Rows) -> list[Row]:
    some = [row for row in given["tides"] if row["v"] is not None]
    return [{"k": row["k"], "v": row["v"], "place": 1 + sum(one["k"] < row["k"] for one in some)} for row in some]


def _big(row: Row) -> list[Row]:
    return [{"k": row["k"], "v": row["v"]}] if row["v"] not in (None, "a") else []


def _offered(row: Row) -> list[Row]:
    return [{"k": row["k"], "v": row["v"], "since": 7 * row["k"]}] if row["v"] is not None else []


def _sometimes(row: Row) -> Row:
    return {"k": row["k"], "v": row["v"], "at": row["k"] if row["v"] not in (None, "b") else None}


PLAIN: dict[str, Plain] = {
    BIG: Plain(lambda given: [made for row in given["tides"] for made in _big(row)], _big),
    BIGGER: Plain(
        lambda given: [made for row in given["tides"] for made in _big(row) if row["k"] > 2],
        lambda row: [made for made in _big(row) if row["k"] > 2],
    ),
    COUNTS: Plain(_counts, by={"tides": ("v",)}, group_columns=("v",)),
    SUMS: Plain(_sums, by={"tides": ("v",)}, group_columns=("v",)),
    TALLIES: Plain(
        lambda given: [{name: row[name] for name in ("v", "n")} for row in _counts(given)],
        by={"tides": ("v",)},
        group_columns=("v",),
    ),
    MEANS: Plain(
        lambda given: [
            {"v": v, "mean": sum(row["w"] for row in some) / len(some)} for v, some in _groups(given["tides"], "v")
        ],
        by={"tides": ("v",)},
        group_columns=("v",),
    ),
    JOINED: Plain(
        _joined("tides", "moons", ("k", "k"), lambda one, other: {"k": one["k"], "v": one["v"], "w": other["v"]}),
        by={"tides": ("k",), "moons": ("k",)},
        group_columns=("k",),
    ),
    RANKED: Plain(_ranked),
    OFFERED: Plain(lambda given: [made for row in given["tides"] for made in _offered(row)], _offered),
    SOMETIMES: Plain(lambda given: [_sometimes(row) for row in given["tides"]], lambda row: [_sometimes(row)]),
    MET: Plain(
        _joined("big", "counts", ("v", "v"), lambda one, other: {"k": one["k"], "v": one["v"], "n": other["n"]}),
        by={"big": ("v",), "counts": ("v",)},
        group_columns=("v",),
    ),
}


def _totals(rows: Rows) -> list[Row]:
    groups = {row["v"]: [other["w"] for other in rows["tides"] if other["v"] == row["v"]] for row in rows["tides"]}
    return [{"v": v, "total": sum(cells), "most": max(cells)} for v, cells in groups.items()]


def _great(row: Row) -> list[Row]:
    return [{"v": row["v"], "total": row["total"]}] if row["total"] > 1 else []


PLAIN |= {
    TOTALS: Plain(_totals, by={"tides": ("v",)}, group_columns=("v",)),
    TEXTS: Plain(
        lambda rows: [{"k": row["k"], "t": str(row["w"])} for row in rows["tides"]],
        lambda row: [{"k": row["k"], "t": str(row["w"])}],
    ),
    ALL: Plain(lambda rows: list(rows["tides"]), lambda row: [row]),
    GREAT: Plain(lambda rows: [made for row in rows["totals"] for made in _great(row)], _great),
}


def plain_of(definition: Definition) -> Plain:
    return PLAIN[definition.select] if definition.windows is None else windowed(definition.windows)


def happened(windows: Windows, rows: Sequence[Row]) -> list[Happened]:
    """Rows as windows see them; updates where they say how often (DIFF) and when that was learned (LEARNED)."""
    there = [row for row in rows if row[windows.on] is not None]
    return [
        Happened(
            tuple(row[by] for by in windows.by),
            tuple((name, cell) for name, cell in row.items() if name not in (LEARNED, DIFF)),
            row[windows.on],
            row.get(LEARNED, 0),
            row.get(DIFF, 1),
        )
        for row in there
    ]


def windowed(windows: Windows) -> Plain:
    """Windows by the law of the model."""

    def made(rows: Sequence[Row]) -> list[Row]:
        names = [*windows.by, WINDOW_START, WINDOW_END, *(one.name for one in windows.aggregates)]
        emitted = window_rows(windows, happened(windows, rows), lambda one, row: dict(row)[one.of])
        return [dict(zip(names, (*key, *window, *values), strict=True)) for key, window, values in emitted]

    def reach(row: Row) -> list[tuple[Any, ...]]:
        rule, alone = Rule.of(windows), happened(windows, [row])
        if isinstance(windows.kind, Session):  # also one that is in no window by itself, as it came too late
            return [one.key for one in alone if isinstance(one.key, tuple)]
        if data_driven:
            return [one.row.key for one in judge(rule, alone) if not one.refused]
        return [(*key, *window) for key, window in contents(rule, alone)]

    def due(row: Row) -> int:
        return 0 if windows.early else closes_at(windows.kind, row[WINDOW_END], windows.grace) - 1

    # Data-driven windows follow from all rows of their key.
    data_driven = not isinstance(windows.kind, AlignedKind)
    group_columns = windows.by if data_driven else (*windows.by, WINDOW_START, WINDOW_END)
    return Plain(
        lambda given: made(next(iter(given.values()))),
        group_columns=group_columns,
        reach=reach,
        due=due,
    )


_INT, _STRING = ColumnType.INT, ColumnType.STRING
SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[Column, ...]]] = {
    BIG: (("tides",), ("k",), (Column("v", _STRING),)),
    BIGGER: (("tides",), ("k",), (Column("v", _STRING),)),
    COUNTS: (("tides",), ("v",), (Column("n", _INT), Column("total", _INT), Column("most", _INT))),
    SUMS: (("tides",), ("v",), (Column("n", _INT), Column("total", _INT))),
    TALLIES: (("tides",), ("v",), (Column("n", _INT),)),
    MEANS: (("tides",), ("v",), (Column("mean", ColumnType.FLOAT),)),
    JOINED: (("tides", "moons"), ("k",), (Column("v", _STRING), Column("w", _STRING))),
    RANKED: (("tides",), ("k",), (Column("v", _STRING), Column("place", _INT))),
    OFFERED: (("tides",), ("k",), (Column("v", _STRING), Column("since", _INT))),
    SOMETIMES: (("tides",), ("k",), (Column("v", _STRING), Column("at", _INT))),
    MET: (("big", "counts"), ("k",), (Column("v", _STRING), Column("n", _INT))),
    TOTALS: (("tides",), ("v",), (Column("total", _INT), Column("most", _INT))),
    TEXTS: (("tides",), ("k",), (Column("t", _STRING),)),
    ALL: (("tides",), ("k",), (Column("v", _STRING), Column("w", _INT))),
    GREAT: (("totals",), ("v",), (Column("total", _INT),)),
}
"""Inputs, key and value of each."""


def derived(name: str, select: str, **changes: Any) -> Collection:
    """The declaration of a derived collection."""
    inputs, key, value = SHAPES[select]
    own = {of: changes.pop(of) for of in ("history", "max_lag", "refresh", "validity") if of in changes}
    keys = tuple(Column(one, _INT if one == "k" else _STRING) for one in key)
    return Collection(name, keys, value, Derived(inputs, Definition(select), **own), **changes)


def windows_of(name: str, windows: Windows, input: str = "tides", **changes: Any) -> Collection:
    """The declaration of a collection of windows on whole numbers."""
    own = {of: changes.pop(of) for of in ("history",) if of in changes}
    keys = [Column(one, _STRING) for one in windows.by] + [Column(one, _INT) for one in (WINDOW_START, WINDOW_END)]
    value = tuple(Column(one.name, _INT) for one in windows.aggregates)
    return Collection(name, tuple(keys), value, Derived((input,), Definition(windows=windows), **own), **changes)


def valid(validity: Validity | None, row: Row) -> tuple[int, int | None]:
    """From when to when a row is there."""
    if validity is None:
        return 0, None
    begins = row[validity.valid_from] if validity.valid_from else 0
    if validity.valid_for is not None:
        return begins, begins + validity.valid_for
    ends = row[validity.valid_to] if validity.valid_to else None
    return begins, None if ends is None else max(begins, ends)


def there_at(upper: int, definition: Definition, validity: Validity | None, rows: Sequence[Row]) -> list[Row]:
    """The rows of a definition that are there just before a frontier."""
    times = ((row, *valid(validity, row)) for row in rows)
    due = plain_of(definition).due
    return [row for row, begins, ends in times if max(begins, due(row)) < upper <= (ends or MAX_TIME)]

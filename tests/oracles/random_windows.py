"""Random definitions of windows, and random rows that are hard to compute with, each the same for the same seed.

Expressions are such as people write: columns, comparisons, arithmetic, CASE, COALESCE, CAST, LIKE, IN, BETWEEN,
IS NULL, some functions. Some raise for some rows: they overflow, or divide by zero.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, ValueType
from tidemark.model.instant import parse_instant
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import EVENT_TIME, Late, Windows

START = parse_instant("2024-01-01")
MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
KINDS = ("tumbling", "hopping", "cumulate", "calendar", "sliding", "session")
PRICE, WIDE, WHOLE, RATE = DecimalType(12, 2), DecimalType(38, 10), DecimalType(20, 0), DecimalType(5, 4)
COLUMNS: dict[str, ValueType] = {
    "id": ColumnType.INT, "g": ColumnType.STRING, "h": ColumnType.INT, "ok": ColumnType.BOOL, "n": ColumnType.INT,
    "m": ColumnType.INT, "x": ColumnType.FLOAT, "y": ColumnType.FLOAT, "s": ColumnType.STRING,
    "note": ColumnType.STRING, "day": ColumnType.DATE, "at": ColumnType.TIMESTAMP, "cal": ColumnType.TIMESTAMP,
    "ti": ColumnType.INT, "p": PRICE, "q": WIDE, "w": WHOLE, "r": RATE, "raw": ColumnType.BYTES, "doc": ColumnType.JSON,
}  # fmt: skip
INPUT = tuple(Column(name, of) for name, of in COLUMNS.items())
ON = ("at", "cal", "day", "ti", EVENT_TIME)
ZONES = ("UTC", "America/New_York", "Europe/London", "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia")
Row = dict[str, Any]
"""Times in microseconds, dates in days since 1970."""


@dataclass(frozen=True)
class Rows:
    """Random rows of a seed. `happened` is their event time, and not among their columns."""

    chance: random.Random

    def row(self, number: int, day: int) -> Row:
        """A row that is learned on a day, from 1 on; one in five happened the day before."""
        pick = self.chance.choice
        at = (day - 1) * DAY + pick([*range(24)]) * HOUR + pick([0, 0, 0, 1, -1, 30 * MINUTE, HOUR - 1])
        if self.chance.random() < 0.2:
            at -= pick([DAY, 2 * DAY, 5 * HOUR])
        return {
            "id": number,
            "g": pick(["a", "b", "b", "", "ü", None]),
            "h": pick([None, 0, 1, -7]),
            "ok": pick([True, False, None]),
            "n": pick([None, 0, 1, -1, 7, -3, 2**40, 2**53 + 1, 2**62, -(2**62), *range(-20, 20)]),
            "m": pick([None, *range(-5, 6)]),
            "x": pick([None, 0.0, -0.0, 0.1, 0.2, 0.3, -0.3, 1e16, -1e16, 1.0, 1e300, 5e-324, *_NO_NUMBERS]),
            "y": pick([None, 0.1, 0.2, 0.7, -0.7, 2.5, 1e15, 1e-12, 3.0, -4.0]),
            "s": pick([None, "", "a", "A", "ab", "it's", 'say "b"', "50%", "a_c", "back\\slash", "é", "😀", " a "]),
            "note": pick([None, "1", "2.50", "x", "2024-01-02", "true", "late"]),
            "day": None if self.chance.random() < 0.1 else 19_723 + day + pick([-400, -1, *range(-8, 9)]),
            "at": None if self.chance.random() < 0.06 else START + at,
            "cal": None if self.chance.random() < 0.06 else self._of_the_calendar(),
            "ti": pick([None, *range(-30, 60)]),
            "p": pick([None, *map(Decimal, ("0.00", "0.25", "-0.01", "1.10", "9999999999.99", "-9999999999.99"))]),
            "q": pick([None, *map(Decimal, ("0.0000000001", "-1.5000000000", "12345678901234567.8900000000"))]),
            "w": pick([None, *map(Decimal, (0, 1, -17, 10**19, 10**20 - 1))]),
            "r": pick([None, *map(Decimal, ("0.0001", "9.9999", "-0.3333", "1.0000"))]),
            "raw": pick([None, b"", b"\x00\xff", b"a", b"\xff"]),
            "doc": pick([None, '{"a":1}', '{"a":{"b":[1,2]}}', "0.5", '"text"', "[]"]),
            "happened": max(0, START + at),
            "learned": START + (day - 1) * DAY + pick([*range(24)]) * HOUR,
            "change": pick([1, 1, 1, 1, 2, 3]),
            "gone": False,
        }

    def _of_the_calendar(self) -> int:
        """Instants near which clocks are changed, years begin, or nothing is."""
        near = self.chance.choice(_CHANGES)
        return near + self.chance.choice([0, -1, 1, HOUR, -HOUR, 5 * HOUR, -5 * HOUR, DAY, -DAY, 3 * HOUR + 7])


_NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))
_CHANGES = [
    parse_instant(text)
    for text in (
        *("2024-03-10T07:00:00Z", "2024-11-03T06:00:00Z", "2023-12-31T23:59:59Z", "2024-02-29T12:00:00Z"),
        *("2024-03-31T01:00:00Z", "2018-11-04T03:00:00Z", "2018-02-18T02:00:00Z", "2011-12-30T10:00:00Z"),
        *("1970-01-01T00:00:00Z", "2023-07-01T00:00:00Z"),
    )
]


@dataclass(frozen=True)
class Definitions:
    """Random definitions of a seed, over an input of an envelope: of `append` nothing is retracted, so late rows may
    count in the next window; of `upsert` it is not kept when rows happened."""

    chance: random.Random
    envelope: Envelope = Envelope.UPDATES

    def windows(self, kind: str) -> Windows:
        """A definition of a kind."""
        pick = self.chance.choice
        on = pick([one for one in ON if (kind, one) != ("calendar", "ti") and self._knows(one)])
        by = tuple(self.chance.sample(["g", "h", "ok", "s", "p", "note"], pick([0, 1, 1, 2, 3])))
        late, max_lateness = Late.REEMIT, None
        if self.envelope is Envelope.APPEND:
            late = Late.NEXT_WINDOW if kind not in ("sliding", "session") else Late.DISCARD
        elif self.chance.random() < 0.25:
            late, max_lateness = pick([(Late.DISCARD, None), (Late.REEMIT, pick([0, HOUR, 30 * HOUR]))])
        return Windows(
            by,
            on,
            self._kind(kind, on),
            tuple(self._aggregate(at) for at in range(pick([1, 3, 5, 7]))),
            where=self.condition(2) if self.chance.random() < 0.6 else "",
            grace=pick([0, 0, 1, 2 * HOUR, 30 * HOUR]),
            late=late,
            max_lateness=max_lateness,
            early=pick([True, False]),
        )

    def _knows(self, on: str) -> bool:
        return on != EVENT_TIME or self.envelope is not Envelope.UPSERT

    def _kind(self, kind: str, on: str) -> WindowKind:
        pick = self.chance.choice
        of = {"ti": 1, "day": DAY, "cal": 6 * HOUR}.get(on, 30 * MINUTE)
        size = of * pick([1, 2, 3, 5, 8, 13])
        match kind:
            case "tumbling":
                return Tumbling(size, pick([0, 1, -of, size + 3]))
            case "hopping":
                advance = max(1, of * pick([1, 2, 3, 5]))
                return Hopping(size, advance, pick([0, 1, -of]), sampling=advance > size)
            case "cumulate":
                return Cumulate(size * pick([1, 2, 4]), size, pick([0, 1, of]))
            case "calendar":
                return Calendar(pick(list(Unit)), "UTC" if on == "day" else pick(ZONES))
            case "sliding":
                return Sliding(pick([0, 1, size, size, size + 1]), pick([True, False, False]))
        return Session(max(1, size), pick([True, True, False]), pick([None, None, 2 * size, size + 1, size]))

    def _aggregate(self, at: int) -> Aggregate:
        function = self.chance.choice(list(Function))
        numeric = function in (Function.SUM, Function.AVG, Function.APPROX_QUANTILE)
        of = "" if function is Function.COUNT and self.chance.random() < 0.5 else self.expression(numeric)
        where = self.condition(1) if self.chance.random() < 0.4 else ""
        quantile = self.chance.choice([0.0, 0.5, 0.9, 1.0]) if function is Function.APPROX_QUANTILE else None
        return Aggregate(f"a{at}", function, of, where, quantile)

    def expression(self, numeric: bool) -> str:
        """Mostly a column."""
        numbers: list[Callable[[], str]] = [self.number, self.decimal, self.float]
        others = [self.text, self.moment, lambda: self.condition(1), lambda: "raw", lambda: "doc"]
        if self.chance.random() < 0.4:
            columns = [name for name, of in COLUMNS.items() if not numeric or _is_number(of)]
            return self.chance.choice(columns)
        return self.chance.choice(numbers if numeric else [*numbers, *others])()

    def number(self, depth: int = 2) -> str:
        """An expression of whole numbers."""
        pick, inner = self.chance.choice, lambda: self.number(depth - 1)
        if depth == 0 or self.chance.random() < 0.3:
            return pick(["n", "m", "m", "h", "id", "ti", str(pick([0, 1, -1, 2, 10, 1000]))])
        return pick(
            [
                lambda: f"{inner()} {pick(['+', '-'])} {inner()}",
                lambda: f"({inner()}) * {pick(['2', '-1', 'm', '100'])}",
                lambda: f"({inner()}) {pick(['%', 'DIV'])} {pick(['7', '3', '-2', 'nullif(m, 0)', 'm'])}",
                lambda: f"CASE WHEN {self.condition(1)} THEN {inner()} ELSE {inner()} END",
                lambda: f"CASE m WHEN 1 THEN {inner()} WHEN 2 THEN n END",
                lambda: f"coalesce({inner()}, {inner()})",
                lambda: f"length({self.text(1)})",
                lambda: f"abs({inner()})",
                lambda: f"CAST({self.decimal(1)} AS bigint)",
                lambda: f"CAST({inner()} AS int)",
                lambda: f"IF({self.condition(1)}, {inner()}, NULL)",
                lambda: f"year({self.moment(1)})",
                lambda: "datediff(date(at), day)",
                lambda: f"nullif({inner()}, 0)",
                lambda: f"greatest({inner()}, {inner()})",
            ]
        )()

    def decimal(self, depth: int = 2) -> str:
        """An expression of decimals."""
        pick, inner = self.chance.choice, lambda: self.decimal(depth - 1)
        if depth == 0 or self.chance.random() < 0.35:
            return pick(["p", "p", "q", "w", "r", "1.50", "-0.0001"])
        return pick(
            [
                lambda: f"{inner()} {pick(['+', '-'])} {inner()}",
                lambda: f"({inner()}) * {pick(['r', '1.19', 'm', '2'])}",
                lambda: f"({inner()}) / {pick(['3', '0.7', 'nullif(r, 0)', 'm'])}",
                lambda: f"CAST({inner()} AS decimal({pick(['12, 2', '38, 6', '18, 4', '10, 0'])}))",
                lambda: f"CAST({self.number(1)} AS decimal({pick(['20, 0', '12, 2', '38, 0'])}))",
                lambda: f"round({inner()}, {pick([0, 1, 2])})",
                lambda: f"CASE WHEN {self.condition(1)} THEN {inner()} ELSE {inner()} END",
                lambda: f"coalesce({inner()}, 0)",
                lambda: f"-({inner()})",
                lambda: f"abs({inner()})",
            ]
        )()

    def float(self, depth: int = 2) -> str:
        """An expression of floats."""
        pick, inner = self.chance.choice, lambda: self.float(depth - 1)
        if depth == 0 or self.chance.random() < 0.4:
            return pick(["x", "x", "y", "y", "0.5D", "1e3"])
        return pick(
            [
                lambda: f"{inner()} {pick(['+', '-', '*'])} {inner()}",
                lambda: f"({inner()}) / {pick(['3', 'nullif(y, 0)', 'm'])}",
                lambda: f"CAST({self.number(1)} AS double)",
                lambda: f"CAST({self.decimal(1)} AS double)",
                lambda: f"coalesce({inner()}, {inner()})",
                lambda: f"CASE WHEN {self.condition(1)} THEN {inner()} END",
                lambda: f"abs({inner()})",
                lambda: f"nanvl({inner()}, 0D)",
            ]
        )()

    def text(self, depth: int = 2) -> str:
        """An expression of texts."""
        pick, inner = self.chance.choice, lambda: self.text(depth - 1)
        if depth == 0 or self.chance.random() < 0.4:
            return pick(["s", "s", "note", "g", "'x'", "'it\\'s'", "''"])
        return pick(
            [
                lambda: f"{pick(['upper', 'lower', 'trim', 'reverse'])}({inner()})",
                lambda: f"concat({inner()}, {inner()})",
                lambda: f"{inner()} || '-' || {inner()}",
                lambda: f"substring({inner()}, {pick([1, 2, -1])}, {pick([1, 2])})",
                lambda: f"coalesce({inner()}, 'none')",
                lambda: f"CASE WHEN {self.condition(1)} THEN {inner()} ELSE {inner()} END",
                lambda: f"CAST({pick([self.number, self.decimal, self.moment])(1)} AS string)",
                lambda: "CAST(ok AS string)",
                lambda: f"replace({inner()}, 'a', 'o')",
            ]
        )()

    def moment(self, depth: int = 1) -> str:
        """An expression of times and dates."""
        pick = self.chance.choice
        return pick(
            [
                *("at", "cal", "day", "day", "date(at)", "CAST(cal AS date)", "CAST(day AS timestamp)"),
                *("at + INTERVAL 1 HOUR", "date_add(day, CAST(m AS int))", "date_trunc('HOUR', at)"),
                *("trunc(day, 'MONTH')", "coalesce(date(at), day)", "DATE '2024-01-02'"),
            ]
        )

    def condition(self, depth: int) -> str:
        """An expression that is true, false or null."""
        pick, inner = self.chance.choice, lambda: f"({self.condition(depth - 1)})"
        if depth > 0 and self.chance.random() < 0.4:
            return pick(
                [
                    lambda: f"{inner()} {pick(['AND', 'OR'])} {inner()}",
                    lambda: f"NOT {inner()}",
                    lambda: f"coalesce({inner()}, {pick(['true', 'false'])})",
                ]
            )()
        compared = pick(["=", "<>", "<", "<=", ">", ">="])
        return pick(
            [
                lambda: f"{self.number(1)} {compared} {self.number(0)}",
                lambda: f"m {compared} {pick([-2, 0, 1, 3])}",
                lambda: f"x {compared} {pick(['0', '0.1', 'y', '-1e16'])}",
                lambda: f"{self.decimal(1)} {compared} {pick(['0', '0.25', 'p', '1.1'])}",
                lambda: f"{self.text(1)} {compared} {self.text(0)}",
                lambda: f"{self.text(1)} {pick(['LIKE', 'NOT LIKE'])} {pick(_PATTERNS)}",
                lambda: f"{self.text(0)} {pick(['IN', 'NOT IN'])} ('a', 'b', 'it\\'s', '')",
                lambda: f"m {pick(['IN', 'NOT IN'])} (1, 2, {pick(['-1', 'NULL', '3'])})",
                lambda: f"{self.number(1)} BETWEEN {pick(['-3 AND 4', '0 AND m', '1 AND 0'])}",
                lambda: f"p BETWEEN -0.01 AND {pick(['1', '1.10', 'r'])}",
                lambda: f"({self.expression(False)}) IS {pick(['', 'NOT '])}NULL",
                lambda: f"at {compared} {pick(_TIMES)}",
                lambda: f"{pick(['day', 'date(at)'])} {compared} {pick(_DATES)}",
                lambda: pick(["ok", "NOT ok", "true", "1 = 1"]),
                lambda: f"isnan({pick(['x', 'y'])})",
                lambda: f"m <=> {pick(['NULL', '1', 'h'])}",
            ]
        )()


_PATTERNS = ["'a%'", "'%a%'", "'_'", "'50\\\\%'", "'a\\\\_c'", "'%\\''", "'%'", "''"]
_TIMES = ["'2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00'", "cal", "'2024-01-02T05:00:00Z'"]
_DATES = ["'2024-01-02'", "DATE '2024-01-01'", "date(cal)"]


def _is_number(of: ValueType) -> bool:
    return isinstance(of, DecimalType) or of in (ColumnType.INT, ColumnType.FLOAT)

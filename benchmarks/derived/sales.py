"""Sales of shops: what is derived from, and what must come out of each definition, calculated by numpy.

A sale has a key (`shop`, `id`), both int64, and a value: `amount` (int64), `ratio` (double), `label` (a string, one of
LABELS). Every shop has as many sales. On the last day all sales of a hundredth of the shops change, by an upsert each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.feed import DAY, START, Fingerprint, Ints
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval

LABELS = 1_000
FILE_ROWS = 500_000
CHANGES = ("of neighbours", "scattered")
"""What changes on the days after the first."""
NAME = "sales"


@dataclass(frozen=True)
class Rows:
    """Columns of sales."""

    shop: Ints
    id: Ints
    amount: Ints
    ratio: npt.NDArray[np.float64]
    label: Ints

    def at(self, chosen: Ints | npt.NDArray[np.bool_] | slice) -> Rows:
        return Rows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def table(self, day: int) -> pa.Table:
        """As the columns of a change file."""
        labels = pa.array([f"label-{number:04d}" for number in range(LABELS)])
        at = pa.array(np.full(len(self.id), START + day * DAY + DAY // 2), pa.timestamp("us", "UTC"))
        names = ("shop", "id", "amount", "ratio", "label", "sold_at")
        columns = (self.shop, self.id, self.amount, self.ratio, labels.take(pa.array(self.label)), at)
        return pa.table(dict(zip(names, columns, strict=True)))


@dataclass(frozen=True)
class Sales:
    """`shops` shops of `each` sales."""

    shops: int
    each: int
    seed: int = 1

    @property
    def collection(self) -> Collection:
        source = Source("{{ landing }}/{{ ds }}/*.parquet", Format.PARQUET, Envelope.UPSERT)
        columns = ((name, ColumnType.INT) for name in ("shop", "id"))
        key = tuple(Column(name, of) for name, of in columns)
        value = (("amount", ColumnType.INT), ("ratio", ColumnType.FLOAT), ("label", ColumnType.STRING))
        inputs = (Column("sold_at", ColumnType.TIMESTAMP),)
        landed = Landed(source, START, time="sold_at", inputs=inputs)
        return Collection(NAME, key, tuple(Column(name, of) for name, of in value), landed)

    def interval(self, day: int) -> Interval:
        return Interval(START + day * DAY, START + (day + 1) * DAY)

    @cached_property
    def first(self) -> Rows:
        """What is sold on the first day."""
        chance, rows = np.random.default_rng(self.seed), self.shops * self.each
        shop = np.repeat(np.arange(self.shops), self.each)
        amount, ratio = chance.integers(0, 1_000_000, rows), chance.integers(0, 1 << 20, rows) / 1024
        return Rows(shop, np.tile(np.arange(self.each), self.shops), amount, ratio, chance.integers(0, LABELS, rows))

    def changes(self, shop: Ints, day: int) -> npt.NDArray[np.bool_]:
        """Whether the sales of shops change on a day after the first."""
        middle, hundredth = self.shops // 2, max(1, self.shops // 100)
        return (shop >= middle) & (shop < middle + hundredth) if day == 1 else shop % 100 == 7

    def changed(self, day: int) -> Rows:
        """What becomes of the sales that change on a day."""
        rows = self.known(day - 1)
        rows = rows.at(self.changes(rows.shop, day))
        return replace(rows, amount=rows.amount + 1, ratio=rows.ratio + 0.5)

    def known(self, day: int) -> Rows:
        """All sales as they are after a day."""
        rows = self.first
        for later in range(1, day + 1):
            here = self.changes(rows.shop, later)
            rows = replace(rows, amount=rows.amount + here, ratio=rows.ratio + 0.5 * here)
        return rows

    def land(self, landing: Path, day: int) -> int:
        """Write a day's files; their bytes."""
        rows = self.changed(day) if day else self.first
        folder = landing / format_instant(self.interval(day).lower)[:10]
        folder.mkdir(parents=True)
        written = 0
        for number, start in enumerate(range(0, len(rows.id), FILE_ROWS)):
            path = folder / f"{number:04d}.parquet"
            pq.write_table(rows.at(slice(start, start + FILE_ROWS)).table(day), path, compression="zstd")
            written += path.stat().st_size
        return written


@dataclass(frozen=True)
class Case:
    """A definition: `select`, in which mode it is refreshed, and how many times cheaper than whole that is to be after
    a hundredth of the sales changed (None: nothing is aimed at)."""

    name: str
    select: str
    mode: str
    aim: float | None = 20.0

    def expected(self, rows: Rows) -> Fingerprint:
        """What it gives of some sales: rows, and sums of its columns."""
        return _EXPECTED[self.name](rows)


CASES = (
    Case("by row", f"SELECT shop, id, amount * 2 AS twice, label FROM {NAME} WHERE amount % 3 = 0", "by_row"),
    Case("sums by shop", f"SELECT shop, count(*) AS sales, sum(amount) AS amount FROM {NAME} GROUP BY shop", "by_key"),
    Case(
        "most and mean by shop",
        f"SELECT shop, max(amount) AS most, avg(ratio) AS mean FROM {NAME} GROUP BY shop",
        "by_key",
    ),
    Case("most by label", f"SELECT label, max(amount) AS most FROM {NAME} GROUP BY label", "by_key", None),
)
"""One by row, one of sums that can be subtracted, one of groups that are together in the input, and one of groups that
are everywhere in it."""


def _by_row(rows: Rows) -> Fingerprint:
    some = rows.at(rows.amount % 3 == 0)
    return {"rows": len(some.id), "shops": int(some.shop.sum()), "twices": int(2 * some.amount.sum())}


def _sums(rows: Rows) -> Fingerprint:
    shops, counts = np.unique(rows.shop, return_counts=True)
    sums = np.bincount(rows.shop, weights=rows.amount.astype(float))[shops]
    by_shop = int((sums.astype(np.int64) * shops).sum())
    return {
        "rows": len(shops),
        "sales": int(counts.sum()),
        "amounts": int(rows.amount.sum()),
        "amount_by_shop": by_shop,
    }


def _most(rows: Rows) -> Fingerprint:
    order = np.lexsort((rows.amount, rows.shop))
    last = np.flatnonzero(np.append(rows.shop[order][1:] != rows.shop[order][:-1], True))
    most = rows.amount[order][last]
    shops, counts = np.unique(rows.shop, return_counts=True)
    # Multiples of 1/1024, of which so many are exact in any order.
    means = np.bincount(rows.shop, weights=rows.ratio)[shops] / counts
    return {"rows": len(most), "mosts": int(most.sum()), "means": float(np.round(means, 9).sum().round(3))}


def _most_by_label(rows: Rows) -> Fingerprint:
    most = np.full(LABELS, -1)
    np.maximum.at(most, rows.label, rows.amount)
    labels = np.flatnonzero(most >= 0)
    return {"rows": len(labels), "mosts": int(most[labels].sum()), "most_by_label": int((most[labels] * labels).sum())}


_EXPECTED = {"by row": _by_row, "sums by shop": _sums, "most and mean by shop": _most, "most by label": _most_by_label}
FOUND = {
    "by row": ("count(*) AS rows", "sum(shop) AS shops", "sum(twice) AS twices"),
    "sums by shop": (
        "count(*) AS rows",
        "sum(sales) AS sales",
        "sum(amount) AS amounts",
        "sum(amount * shop) AS amount_by_shop",
    ),
    "most and mean by shop": ("count(*) AS rows", "sum(most) AS mosts", "round(sum(round(mean, 9)), 3) AS means"),
    "most by label": (
        "count(*) AS rows",
        "sum(most) AS mosts",
        "sum(most * cast(right(label, 4) AS bigint)) AS most_by_label",
    ),
}
"""The same sums, asked of the current rows."""

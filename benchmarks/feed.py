"""The change files every benchmark reads, and what must come out, calculated without Tidemark.

A feed is `days` intervals of `rows` rows each, drawn from a fixed seed. A row has a key (`id` int64, `code` string),
a value (`amount` int64, `ratio` double, `label` string of 1,000) and two times. All happened in their own interval,
so none is late. Ids are drawn uniformly from `keys`; 2 % of an upsert feed's rows are tombstones. Amounts and ratios
are random and hardly compress, so the bytes are those of data, not of a pattern.

What must come out is calculated with numpy and a plain dictionary and compared as a *fingerprint*: the row count,
three sums and two sums of products across columns, which a value in a wrong row would change. Ratios are multiples
of 1/1024, so their sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval

DAY = 86_400_000_000
START = 15_706 * DAY
"""2013-01-01, in microseconds."""
LABELS = 1_000
DELETED_SHARE = 0.02
FILE_ROWS = 250_000
LEAST_FILES = 2

Ints = npt.NDArray[np.int64]
Fingerprint = dict[str, int | float]


@dataclass(frozen=True)
class Feed:
    """`days` days of `rows` rows over `keys` keys, from `seed`."""

    envelope: Envelope
    days: int
    rows: int
    keys: int
    seed: int = 1

    @property
    def total(self) -> int:
        return self.days * self.rows

    @property
    def collection(self) -> Collection:
        """Its declaration."""
        return declared(self.envelope)

    def interval(self, day: int) -> Interval:
        return Interval(START + day * DAY, START + (day + 1) * DAY)

    def write(self, landing: Path) -> int:
        """Write the files of all days as zstd Parquet below `landing`; how many bytes they have."""
        return sum(write_day(landing, self.interval(n), day.table(self.envelope)) for n, day in enumerate(self.drawn))

    @cached_property
    def drawn(self) -> list[Rows]:
        """The rows of each day."""
        return [drawn_day(self, day) for day in range(self.days)]

    def expected(self, days: int) -> Fingerprint:
        """The fingerprint of what the collection holds after the first `days` days."""
        rows = Rows.concat(self.drawn[:days])
        return rows.fingerprint(rows.surviving() if self.envelope is Envelope.UPSERT else None)


@dataclass(frozen=True)
class Rows:
    """Columns of drawn rows, in file order."""

    id: Ints
    amount: Ints
    ratio: npt.NDArray[np.float64]
    label: Ints
    happened_at: Ints
    reported_at: Ints
    deleted: npt.NDArray[np.bool_]

    @classmethod
    def concat(cls, parts: list[Rows]) -> Rows:
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def at(self, chosen: Ints | slice) -> Rows:
        """The rows at some positions."""
        return Rows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def surviving(self) -> Ints:
        """Positions of each key's last row, unless it is a tombstone: a plain dictionary, filled in event order."""
        order = np.argsort(self.happened_at, kind="stable")
        last = dict(zip(self.id[order].tolist(), order.tolist(), strict=True))
        at = np.fromiter(last.values(), np.int64, len(last))
        return at[~self.deleted[at]]

    def fingerprint(self, at: Ints | None = None) -> Fingerprint:
        """That of the rows at some positions (None: all)."""
        chosen = slice(None) if at is None else at
        ones = np.ones(len(self.id[chosen]), np.int64)
        return fingerprint(self.id[chosen], self.amount[chosen], self.ratio[chosen], self.label[chosen], ones)

    def table(self, envelope: Envelope) -> pa.Table:
        """As the columns of a change file."""
        instant = pa.timestamp("us", "UTC")
        names = pa.array([f"label-{number:04d}" for number in range(LABELS)])
        codes = pa.array([code_of(number) for number in range(CODES)])
        columns: dict[str, Any] = {
            "id": pa.array(self.id),
            "code": codes.take(pa.array(self.id % CODES)),
            "amount": pa.array(self.amount),
            "ratio": pa.array(self.ratio),
            "label": names.take(pa.array(self.label)),
            "happened_at": pa.array(self.happened_at).cast(instant),
            "reported_at": pa.array(self.reported_at).cast(instant),
        }
        if envelope is Envelope.UPSERT:
            columns["deleted"] = pa.array(self.deleted)
        return pa.table(columns)


CODES = 97


def code_of(number: int) -> str:
    """The string half of a key: it follows from the id, so that there are as many keys as ids."""
    return f"code-{number:02d}"


def fingerprint(
    ids: Ints, amount: Ints, ratio: npt.NDArray[np.float64], label: Ints, multiplicity: Ints
) -> Fingerprint:
    """Count, sums and sums of products, each row weighted by its multiplicity."""
    return {
        "rows": int(multiplicity.sum()),
        "ids": int((multiplicity * ids).sum()),
        "amounts": int((multiplicity * amount).sum()),
        "ratios": float((multiplicity * ratio).sum()),
        "amount_by_id": int((multiplicity * amount * (ids % 1009)).sum()),
        "label_by_id": int((multiplicity * label * (ids % 1013)).sum()),
    }


def fingerprint_of(table: pa.Table, multiplicity: str = "_multiplicity") -> Fingerprint:
    """That of an as-of answer of the Arrow reader, or of other rows that count as often as `multiplicity` says."""
    number = table["label"].combine_chunks()
    number = pa.compute.cast(pa.compute.utf8_slice_codeunits(number, len("label-")), pa.int64())
    codes = set(pa.compute.unique(pa.compute.utf8_slice_codeunits(table["code"], len("code-"))).to_pylist())
    if not codes <= {f"{number:02d}" for number in range(CODES)}:
        raise AssertionError(f"codes that were never written: {sorted(codes)[:5]}")
    ids, amount, ratio, often = (table[name].to_numpy() for name in ("id", "amount", "ratio", multiplicity))
    return fingerprint(ids, amount, ratio, number.to_numpy(zero_copy_only=False), often)


def declared(envelope: Envelope, name: str = "") -> Collection:
    """A collection as the feeds need it."""
    upsert = envelope is Envelope.UPSERT
    inputs = [Column("happened_at", ColumnType.TIMESTAMP), Column("reported_at", ColumnType.TIMESTAMP)]
    return Collection(
        name=name or f"bench_{envelope}",
        key=(Column("id", ColumnType.INT), Column("code", ColumnType.STRING)),
        value=(
            Column("amount", ColumnType.INT),
            Column("ratio", ColumnType.FLOAT),
            Column("label", ColumnType.STRING),
        ),
        origin=Landed(
            source=Source(
                path="{{ landing }}/{{ ds }}/*.parquet",
                format=Format.PARQUET,
                envelope=envelope,
                order_by="happened_at" if upsert else None,
                delete_when="deleted = TRUE" if upsert else None,
            ),
            start=START,
            time="reported_at",
            event_time="happened_at",
            inputs=tuple([*inputs, Column("deleted", ColumnType.BOOL)] if upsert else inputs),
        ),
    )


def write_day(landing: Path, interval: Interval, table: pa.Table) -> int:
    """Write one interval's files; how many bytes they have."""
    folder = landing / format_instant(interval.lower)[:10]
    folder.mkdir(parents=True)
    for number, some in enumerate(_cut(table)):
        pq.write_table(some, folder / f"{number:04d}.parquet", compression="zstd")
    return sum(path.stat().st_size for path in folder.iterdir())


def _cut(table: pa.Table) -> Iterator[pa.Table]:
    files = max(LEAST_FILES, -(-table.num_rows // FILE_ROWS))
    size = -(-table.num_rows // files)
    return (table.slice(start, size) for start in range(0, table.num_rows, size))


def drawn_day(feed: Feed, day: int) -> Rows:
    """One day's rows, the same whenever they are drawn."""
    chance = np.random.default_rng([feed.seed, day])
    lower, upper = feed.interval(day).lower, feed.interval(day).upper
    happened = chance.integers(lower, upper, feed.rows)
    return Rows(
        id=chance.integers(0, feed.keys, feed.rows),
        amount=chance.integers(0, 1_000_000, feed.rows),
        ratio=chance.integers(0, 2**20, feed.rows) / 1024,
        label=chance.integers(0, LABELS, feed.rows),
        happened_at=happened,
        reported_at=np.minimum(happened + chance.integers(0, 60_000_000, feed.rows), upper - 1),
        deleted=chance.random(feed.rows) < (DELETED_SHARE if feed.envelope is Envelope.UPSERT else 0),
    )

"""Years of a collection in minutes: a large base, then many small ingests, and what it must contain after each of them.

Every engine gets the same rows (benchmarks/feed.py draws them): day 0 is the base, each later day one ingest. Of an
`append` workload all rows are new; of an `upsert` workload ids are drawn from those of the base and a tenth more, and
2 % are tombstones. What it must contain is calculated here with numpy and plain arrays, as *fingerprints* that add up:
what changed between two days is the difference of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.feed import DAY, Feed, Fingerprint, Ints, Rows, drawn_day, write_day
from benchmarks.measure import in_fresh_process
from tidemark.model.collection import Collection, Envelope, Late

NEW_SHARE = 0.1


@dataclass(frozen=True)
class Workload:
    """`base` rows, then `ingests` of `rows` rows each; a row may come `late_days` late (None: late ones are dead
    letters), so the facts of as many days are remembered."""

    envelope: Envelope
    base: int
    ingests: int
    rows: int
    seed: int = 1
    late_days: int | None = None

    @property
    def collection(self) -> Collection:
        """Its declaration."""
        collection = self.feed.collection
        if self.late_days is None:
            return collection
        late = Late("reemit", self.late_days * DAY)
        return replace(collection, origin=replace(collection.landed, late=late))

    @property
    def feed(self) -> Feed:
        """The declaration and the days; one ingest's rows at a time, as drawing all would need their memory."""
        keys = int(self.base * (1 + NEW_SHARE)) if self.envelope is Envelope.UPSERT else self.base
        return Feed(self.envelope, self.ingests + 1, self.rows, max(1, keys), self.seed)

    def day(self, day: int) -> Rows:
        """The rows of the base (day 0) or of one ingest."""
        if day:
            return drawn_day(self.feed, day)
        base = drawn_day(replace(self.feed, rows=self.base), 0)
        if self.envelope is Envelope.APPEND:
            return base
        return replace(base, id=np.arange(self.base), deleted=np.zeros(self.base, bool))


class CurrentRows:
    """The current rows, updated day by day: of an upsert workload the last value of each id, in arrays by id."""

    def __init__(self, feed: Feed) -> None:
        self._upsert = feed.envelope is Envelope.UPSERT
        self._total: Fingerprint = {}
        ids = feed.keys if self._upsert else 0
        self._last = Rows(
            id=np.arange(ids),
            amount=np.zeros(ids, np.int64),
            ratio=np.zeros(ids),
            label=np.zeros(ids, np.int64),
            happened_at=np.zeros(ids, np.int64),
            reported_at=np.zeros(ids, np.int64),
            deleted=np.ones(ids, bool),
        )

    def after(self, rows: Rows) -> Fingerprint:
        """The fingerprint of the current rows once these rows have come."""
        if not self._upsert:
            self._total = plus(self._total, rows.fingerprint())
            return self._total
        # Equal event times: the later one of a day.
        order = np.argsort(rows.happened_at, kind="stable")
        order = order[rows.happened_at[order] >= self._last.happened_at[rows.id[order]]]
        last = dict(zip(rows.id[order].tolist(), order.tolist(), strict=True))
        ids, at = np.fromiter(last, np.int64, len(last)), np.fromiter(last.values(), np.int64, len(last))
        before = self._last.fingerprint(ids[~self._last.deleted[ids]])
        for name in ("amount", "ratio", "label", "happened_at", "deleted"):
            getattr(self._last, name)[ids] = getattr(rows, name)[at]
        after = self._last.fingerprint(ids[~self._last.deleted[ids]])
        self._total = plus(self._total, minus(after, before))
        return self._total

    def of(self, id: int) -> Fingerprint:
        """The fingerprint of the current rows of one id of an upsert workload."""
        return self._last.fingerprint(np.array([id] if not self._last.deleted[id] else [], np.int64))

    def late(self, workload: Workload, day: int) -> Rows:
        """Rows reported on a day that happened at any time before it, none of them a deletion, of ids that have a row
        or never had one: what becomes of a deleted key is a case of its own (benchmarks/peers/semantics.py)."""
        rows = drawn_day(workload.feed, day)
        lower = workload.feed.interval(day).lower
        chance = np.random.default_rng([workload.seed, day, 1])
        fit = ~(self._last.deleted & (self._last.happened_at > 0))
        return replace(
            rows,
            id=chance.choice(np.flatnonzero(fit), len(rows.id)),
            happened_at=chance.integers(workload.feed.interval(0).lower, lower, len(rows.id)),
            deleted=np.zeros(len(rows.id), bool),
        )


def plus(one: Fingerprint, other: Fingerprint) -> Fingerprint:
    return {name: one.get(name, 0) + amount for name, amount in other.items()}


def minus(one: Fingerprint, other: Fingerprint) -> Fingerprint:
    return {name: one[name] - amount for name, amount in other.items()}


def windows(ingests: int, widths: tuple[int, ...], samples: int, seed: int) -> list[tuple[int, int]]:
    """Days to stand at, and days to look back from there: every width at each of the places, drawn once for all."""
    fitting = [width for width in widths if width <= ingests]
    chance = np.random.default_rng([seed, 1_000_000])
    places: Ints = np.sort(chance.integers(max(fitting, default=0), ingests + 1, samples))
    return [(int(place), width) for place in places for width in fitting]


def land(workload: Workload, landing: Path) -> tuple[list[Fingerprint], list[int]]:
    """Write every day's files, in a process of its own: the fingerprint after each day, and the bytes of each."""
    answer: tuple[list[Fingerprint], list[int]] = in_fresh_process(_land, workload, landing)
    return answer


def _land(workload: Workload, landing: Path) -> tuple[list[Fingerprint], list[int]]:
    current, fingerprints, sizes = CurrentRows(workload.feed), [], []
    for day in range(workload.ingests + 1):
        rows = workload.day(day)
        fingerprints.append(current.after(rows))
        sizes.append(write_day(landing, workload.feed.interval(day), rows.table(workload.envelope)))
    return fingerprints, sizes


def old_age(full: bool) -> list[Workload]:
    """What the longevity benchmark runs."""
    if not full:
        return [Workload(Envelope.APPEND, 100_000, 200, 1_000), Workload(Envelope.UPSERT, 50_000, 100, 500)]
    lives = [Workload(Envelope.APPEND, 10_000_000, 1_000, 10_000), Workload(Envelope.UPSERT, 1_000_000, 200, 1_000)]
    return [*lives, Workload(Envelope.UPSERT, 1_000_000, 1_000, 1_000, late_days=10)]


def beside_spark(full: bool) -> tuple[Workload, tuple[int, ...]]:
    """What the peers on Spark run, and after how many ingests they are maintained (0: never)."""
    if not full:
        return Workload(Envelope.UPSERT, 50_000, 6, 1_000), (3,)
    return Workload(Envelope.UPSERT, 1_000_000, 30, 1_000), (0, 10)


def side_by_side(full: bool) -> list[tuple[Workload, int]]:
    """What peers run, and after how many ingests each is maintained."""
    if not full:
        return [(Workload(Envelope.UPSERT, 50_000, 12, 1_000), 4)]
    seeds = [(Workload(Envelope.UPSERT, 1_000_000, 16, 10_000, seed), 4) for seed in (1, 2, 3)]
    return [*seeds, (Workload(Envelope.UPSERT, 1_000_000, 100, 1_000), 10)]

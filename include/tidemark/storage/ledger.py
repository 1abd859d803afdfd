"""The ledger of source files as stored: sorted runs, newest last, merged by levels so that a look-up stays short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidemark.model.arrangement import LedgerRun
from tidemark.model.ledger import LedgerEntry, newest
from tidemark.storage import sidecar
from tidemark.storage.codec import ENTRIES
from tidemark.storage.store import ObjectStore

FAN_IN = 8
"""Neighbouring runs of one level that are merged into one of the next: ingest N leaves at most 8 log8 N runs."""


def save_run(store: ObjectStore, key: str, entries: Iterable[LedgerEntry], *, level: int = 0) -> LedgerRun:
    """Write entries as one sorted run under a fresh key. `entries` must not be empty."""
    ordered = tuple(sorted(entries, key=lambda entry: entry.path))
    ref = sidecar.write(store, key, ordered, ENTRIES)
    return LedgerRun(ref, len(ordered), ordered[0].path, ordered[-1].path, level)


def load_run(store: ObjectStore, run: LedgerRun) -> tuple[LedgerEntry, ...]:
    """The entries of one run."""
    entries: tuple[LedgerEntry, ...] = sidecar.read(store, run.object, ENTRIES)
    return entries


def known(store: ObjectStore, runs: Sequence[LedgerRun], paths: Sequence[str]) -> dict[str, LedgerEntry]:
    """The last word on each of `paths` that the ledger has heard of; opens only runs that can hold one."""
    wanted = set(paths)
    spans = [run for run in runs if any(run.first_path <= path <= run.last_path for path in wanted)]
    last = newest(load_run(store, run) for run in spans)
    return {path: entry for path, entry in last.items() if path in wanted}


def entries(store: ObjectStore, runs: Sequence[LedgerRun]) -> Iterator[LedgerEntry]:
    """The last word on every path, ascending by path."""
    last = newest(load_run(store, run) for run in runs)
    yield from (last[path] for path in sorted(last))


def due_for_merge(runs: Sequence[LedgerRun]) -> tuple[LedgerRun, ...]:
    """The oldest FAN_IN neighbouring runs of one level, or nothing."""
    for start in range(len(runs) - FAN_IN + 1):
        window = tuple(runs[start : start + FAN_IN])
        if len({run.level for run in window}) == 1:
            return window
    return ()

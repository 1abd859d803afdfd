"""What the unsealed gate sees of batches that correct: what they retracted, and from how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.jobs.job import Job, Runner
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef, Part, UnsealedBatch
from tidemark.model.collection import Envelope
from tidemark.model.ledger import LedgerEntry
from tidemark.plan.ranges import TASK_ROWS, split_keys, within
from tidemark.plan.tasks import (
    Contributed,
    NotContributedAnswer,
    NotContributedTask,
    RetractedShareAnswer,
    RetractedShareTask,
)
from tidemark.quality.evidence import Corrected
from tidemark.storage.sidecars import ledger, parts_table

Tables = dict[str, tuple[Part, ...]]
"""The parts of tables, by the tables' keys."""


def corrected_batches(
    job: Job,
    runner: Runner,
    state: Arrangement,
    batches: Mapping[str, Sequence[Part]],
    recent: Iterable[LedgerEntry],
) -> dict[str, Corrected]:
    """The figures of those of the state's unsealed `batches`, each given with its parts, that correct files. `recent`
    entries of the ledger say which other rows their intervals have."""
    found = {}
    some = [batch for batch in state.unsealed if batch.id in batches and batch.learned_at is not None]
    if not some or not state.collection.correctable_for:
        return {}
    others = list(recent)
    for batch in some:
        if entries := _corrected_by(job, state, batch):
            beside = [entry for entry in others if entry.interval == batch.interval]
            found[batch.id] = _figures(job, runner, state, batch, batches[batch.id], entries, beside)
    return found


def _corrected_by(job: Job, state: Arrangement, batch: UnsealedBatch) -> list[LedgerEntry]:
    """The entries of the files that a batch corrected, as it left them. They came as one run of the ledger, and where
    files were corrected or got other names since, newer runs have them, or what replaced them."""
    newest: dict[str, LedgerEntry] = {}
    entries: list[LedgerEntry] = []
    for run in reversed(state.ledger):
        newest = {entry.path: entry for entry in ledger.load_run(job.store, run)} | newest
        earlier = [next((each for each in _back(entry) if each.batch == batch.id), None) for entry in newest.values()]
        entries = [entry for entry in earlier if entry is not None]
        if entries and sum(entry.rows for entry in entries) >= batch.rows:
            break
    return [entry for entry in entries if entry.is_corrected]


def _back(entry: LedgerEntry | None) -> Iterator[LedgerEntry]:
    """An entry, the one it replaced, and so on."""
    while entry is not None:
        yield entry
        entry = entry.replaced


def _figures(
    job: Job,
    runner: Runner,
    state: Arrangement,
    batch: UnsealedBatch,
    parts: Sequence[Part],
    entries: Sequence[LedgerEntry],
    beside: Sequence[LedgerEntry],
) -> Corrected:
    """What one batch retracted."""
    share = retracted_share(job, runner, state, batch, Files(parts, entries, beside))
    if state.collection.landed.source.envelope is Envelope.UPDATES or state.collection.kind.whole_intervals:
        return Corrected(*share)
    tables: Tables = {own: tuple(parts) for own in _own(entries)}
    tables |= {ref.key: parts_table.load(job.store, ref) for ref, _ in _named(entries, set(tables))}
    tasks = _tasks(state, batch, parts, entries, tables)
    answers: list[NotContributedAnswer] = runner.run("not_contributed", tasks)
    return Corrected(*share, sum(answer.not_contributed for answer in answers))


@dataclass(frozen=True)
class Files:
    """Files that a batch corrects.

    Attributes:
        parts: The parts of the batch.
        entries: What the ledger has of the files that it corrects, as it leaves them.
        beside: Entries of other files of the interval.
    """

    parts: Sequence[Part]
    entries: Sequence[LedgerEntry]
    beside: Sequence[LedgerEntry]


def retracted_share(
    job: Job, runner: Runner, state: Arrangement, batch: UnsealedBatch, files: Files
) -> tuple[int, int]:
    """How many rows the interval had, and how many of these the batch retracts.

    A row that is in another file now is not retracted. The batch's own table is the last that its entries name, and
    counts as no row that was there before.
    """
    own = _own(files.entries)
    if state.collection.landed.source.envelope is Envelope.UPDATES:
        return _of_signed_rows(job, runner, state, batch, files, own)
    before = 0
    for ref, first in _named([*files.entries, *files.beside], own):
        parts = parts_table.load(job.store, ref)
        before += sum(part.rows - (0 if first else 2 * part.retractions) for part in parts)
    retracted = sum(part.retractions for part in files.parts)
    if retracted and ((without := _uncompared(state, batch)) or len(files.entries) > 1):
        tasks = [
            RetractedShareTask(state.collection, (), (written,), keys, batch.learned_at or 0, state.function, without)
            for keys in split_keys(files.parts, target_rows=TASK_ROWS)
            if (written := Contributed(within(files.parts, keys), ())).parts
        ]
        shares: list[RetractedShareAnswer] = runner.run("retracted_share", tasks)
        retracted = sum(answer.retracted for answer in shares)
    return before, retracted


def _own(entries: Iterable[LedgerEntry]) -> set[str]:
    return {contribution.parts.key for entry in entries for contribution in entry.contributed[-1:]}


def _uncompared(state: Arrangement, batch: UnsealedBatch) -> tuple[int, ...]:
    """The columns in which a row may differ that is stated again: those to be filled, and what nobody sees."""
    return (*batch.fills, *(column.id for column in state.collection.unseen))


def _of_signed_rows(
    job: Job, runner: Runner, state: Arrangement, batch: UnsealedBatch, files: Files, own: set[str]
) -> tuple[int, int]:
    """As `retracted_share`, where files have rows of negative diff: no sign shows what a file retracted, so that all
    its rows are compared. Whether a row had been there to be taken is not known."""
    entries = files.entries
    corrected = {entry.path for entry in entries}
    numbers: dict[str, list[tuple[int, int]]] = {}
    tables: Tables = dict.fromkeys(own, tuple(files.parts))
    for now, entry in enumerate([*entries, *(entry for entry in files.beside if entry.path not in corrected)]):
        for contribution in entry.contributed:
            if contribution.parts.key not in own or now < len(entries):
                numbers.setdefault(contribution.parts.key, []).append((contribution.number, now))
                tables[contribution.parts.key] = tables.get(contribution.parts.key) or parts_table.load(
                    job.store, contribution.parts
                )
    assert batch.learned_at is not None  # a batch that corrects learned what it says
    tasks = []
    for keys in split_keys([part for some in tables.values() for part in some], target_rows=TASK_ROWS):
        some = {key: Contributed(within(tables[key], keys), tuple(pairs)) for key, pairs in numbers.items()}
        contributed = tuple(table for key, table in some.items() if key not in own and table.parts)
        written = tuple(table for key, table in some.items() if key in own and table.parts)
        without = _uncompared(state, batch)
        tasks.append(
            RetractedShareTask(state.collection, contributed, written, keys, batch.learned_at, state.function, without)
        )
    answers: list[RetractedShareAnswer] = runner.run("retracted_share", tasks)
    return sum(answer.contributed for answer in answers), sum(answer.retracted for answer in answers)


def _named(entries: Iterable[LedgerEntry], own: set[str]) -> Iterator[tuple[ObjectRef, bool]]:
    """The tables of parts that entries name, but for `own`, each once, and whether it belongs to a first reading."""
    seen = set(own)
    for entry in entries:
        for at, contribution in enumerate(entry.contributed):
            if contribution.parts.key not in seen:
                seen.add(contribution.parts.key)
                yield contribution.parts, at == 0


def _tasks(
    state: Arrangement,
    batch: UnsealedBatch,
    parts: Sequence[Part],
    entries: Sequence[LedgerEntry],
    tables: Tables,
) -> list[NotContributedTask]:
    """The rows of the corrected files, by ranges of the keys of which anything was retracted."""
    retracting = [part for part in parts if part.retractions]
    if not retracting:
        return []
    numbers: dict[str, list[tuple[int, int]]] = {}
    for now, entry in enumerate(entries):
        for contribution in entry.contributed:
            numbers.setdefault(contribution.parts.key, []).append((contribution.number, now))
    last, first = max(part.last_key for part in retracting), min(part.first_key for part in retracting)
    assert batch.learned_at is not None  # a batch that corrects learned what it says
    made = []
    for keys in split_keys(retracting, target_rows=TASK_ROWS):
        keys = keys if keys.lower is not None else type(keys)(first, keys.upper)
        some = [Contributed(within(tables[key], keys), tuple(pairs)) for key, pairs in numbers.items()]
        made.append(
            NotContributedTask(
                state.collection,
                tuple(entry.path for entry in entries),
                tuple(table for table in some if table.parts),
                keys,
                last,
                batch.learned_at,
                state.function,
            )
        )
    return made

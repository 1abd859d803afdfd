"""What the unsealed gate sees of batches that correct: what they retracted, and from how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
        if entries := _corrected_by(job, state, batch.id):
            beside = [entry for entry in others if entry.interval == batch.interval]
            found[batch.id] = _figures(job, runner, state, batch, batches[batch.id], entries, beside)
    return found


def _corrected_by(job: Job, state: Arrangement, batch: str) -> list[LedgerEntry]:
    """The entries of the files that a batch corrected, as it left them. They are one run of the ledger, and where files
    were corrected since, entries of newer runs hold them as what was replaced."""
    newest: dict[str, LedgerEntry] = {}
    for run in reversed(state.ledger):
        entries = ledger.load_run(job.store, run)
        newest = {entry.path: entry for entry in entries} | newest
        if any(entry.batch == batch for entry in entries):
            break
    found = (next((earlier for earlier in _back(entry) if earlier.batch == batch), None) for entry in newest.values())
    return [entry for entry in found if entry is not None and entry.is_corrected]


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
    """What one batch retracted. Its own table is the last that its entries name, and counts as no row that was there
    before."""
    own = {contribution.parts.key for entry in entries for contribution in entry.contributed[-1:]}
    if state.collection.landed.source.envelope is Envelope.UPDATES:
        return _of_signed_rows(job, runner, state, batch, parts, entries, beside, own)
    tables: Tables = {}
    before = 0
    for ref, first in _named([*entries, *beside], own):
        tables[ref.key] = parts_table.load(job.store, ref)
        before += sum(part.rows - (0 if first else 2 * part.retractions) for part in tables[ref.key])
    not_contributed = None
    if not state.collection.kind.whole_intervals:
        tables |= dict.fromkeys(own, tuple(parts))
        tasks = _tasks(state, batch, parts, entries, tables)
        answers: list[NotContributedAnswer] = runner.run("not_contributed", tasks)
        not_contributed = sum(answer.not_contributed for answer in answers)
    retracted = sum(part.retractions for part in parts)
    if retracted and (without := _uncompared(state, batch)):
        of_batch = [
            RetractedShareTask(state.collection, (), (written,), keys, batch.learned_at or 0, state.function, without)
            for keys in split_keys(parts, target_rows=TASK_ROWS)
            if (written := Contributed(within(parts, keys), ())).parts
        ]
        shares: list[RetractedShareAnswer] = runner.run("retracted_share", of_batch)
        retracted = sum(answer.retracted for answer in shares)
    return Corrected(before, retracted, not_contributed)


def _uncompared(state: Arrangement, batch: UnsealedBatch) -> tuple[int, ...]:
    """The columns in which a row may differ that is stated again: those to be filled, and what nobody sees."""
    return (*batch.fills, *(column.id for column in state.collection.unseen))


def _of_signed_rows(
    job: Job,
    runner: Runner,
    state: Arrangement,
    batch: UnsealedBatch,
    parts: Sequence[Part],
    entries: Sequence[LedgerEntry],
    beside: Sequence[LedgerEntry],
    own: set[str],
) -> Corrected:
    """As `_figures`, where files have rows of negative diff: no sign shows what a file retracted, so that all its rows
    are compared. Whether a row had been there to be taken is not known."""
    corrected = {entry.path for entry in entries}
    numbers: dict[str, list[tuple[int, int]]] = {}
    tables: Tables = dict.fromkeys(own, tuple(parts))
    for now, entry in enumerate([*entries, *(entry for entry in beside if entry.path not in corrected)]):
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
    return Corrected(sum(answer.contributed for answer in answers), sum(answer.retracted for answer in answers))


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

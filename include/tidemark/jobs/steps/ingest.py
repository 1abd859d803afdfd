"""Ingest: read an interval's delta files into one unsealed batch, each file once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from tidemark.errors import Corruption, FileRefused, InvalidUsage, NotReady
from tidemark.jobs.job import Job, Proposal
from tidemark.jobs.queries.arrivals import memory_share
from tidemark.jobs.steps.landed_files import (
    Planned,
    Wanted,
    ask_whether_replaced,
    moment_of,
    what_to_cut,
    what_to_read,
)
from tidemark.jobs.steps.reread import Corrections, contributing, corrected
from tidemark.jobs.steps.stopped import stopped_by, stopped_by_files
from tidemark.model.arrangement import Arrangement, Fence, LedgerRun
from tidemark.model.batch import DIGEST_MODULUS, ObjectRef, Part, UnsealedBatch, verified
from tidemark.model.batching.cutting import Batching, Cutter, Open, Seen
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.change import (
    CUT,
    MOST_UNDECLARED,
    NAMES_SHOWN,
    NOTHING_CHANGED,
    UNFIT,
    Ingested,
    passed_over_words,
)
from tidemark.model.collection import Collection, Envelope
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.instant import format_instant
from tidemark.model.interval import NOT_OVER, Interval
from tidemark.model.ledger import LedgerEntry, SourceFile, Status, path_hash, set_aside
from tidemark.model.only import leave_out, two_tables
from tidemark.model.place import NO_ORDER, POSITION, another_server, two_servers
from tidemark.model.wording import counted
from tidemark.plan import duplicates
from tidemark.plan.ingest import IngestRequest, ingest_tasks
from tidemark.plan.tasks import IngestAnswer
from tidemark.storage import landing
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import ledger, parts_table

SET_ASIDE_NAMED = 20
"""Files that a run names which it has set aside; the others it counts."""


def ingest(
    job: Job,
    interval: Interval,
    *,
    landing_root: str,
    removed: bool = False,
    yes: bool = False,
    as_landed: bool = False,
    waits: bool = True,
    not_over: bool = False,
    cut: Cut | None = None,
    columns: Sequence[str] | None = None,
    replaced: bool = False,
    added: bool = False,
) -> dict[str, Any]:
    """Read what is new of an interval's files and commit it; the result counts rows, late rows and bad files.

    Files that changed are corrected where the collection lets them be. With `removed` files that are gone are
    corrected, too: their rows are retracted, also where no file is left if `yes`. With `as_landed` the files that have
    landed are taken for all files, whatever the collection waits for and whatever files are beside them; where it does
    not wait (`waits`) files beside them still count. An interval that is `not_over` by the clock is refused otherwise.
    Of an interval that had been read before the result says in words what `changed`; where files were corrected, how
    many, the rows retracted and added, and when these happened first and last (µs).

    With a `cut` the interval goes on: files that have landed so far and were left alone for a while are taken, and it
    is still to be ingested, which takes the rest. Any other cut of it, or none, gives the same rows. The result says
    why an interval was read then, as the state does.

    For `columns` that were declared after the interval was read its files are read again, also those that did not
    change, each once for each column; the differences are written. The result counts files that were `left`, as they
    cannot be taken as declared today, and names those that are `gone`: what both said stays.

    Where files of an interval that can be corrected are gone and others came, these take their place, judged as the
    interval was at first, and only the differences are written (docs/decisions/0091). A person is asked where some of
    the files are gone, or where fewer than half of their rows come back, unless they are said to be `replaced`, or to
    be `added` to those that are gone.

    Idempotent by source file identity. Raises NotReady if the interval has not landed or is not over, InvalidUsage for
    a file that changed since it was ingested and cannot be corrected, FileRefused if a file cannot be taken and the
    collection says `stop`, Unavailable if a file cannot be read now, or memory runs out.
    """
    if columns and cut is not None:
        raise InvalidUsage("--columns reads what was read before, and --cut what was not; leave one of them out")
    if cut is not None and (replaced or added):
        word = "--replaced" if replaced else "--added"
        raise InvalidUsage(f"{word} is about files of a whole interval, which --cut leaves open; leave one of them out")
    names = tuple(dict.fromkeys(columns or ()))
    wanted = Wanted(removed, yes, as_landed, waits, names, replaced=replaced, added=added)
    if cut is not None and not_over:
        raise InvalidUsage("--not-over completes an interval that goes on, and --cut does not; leave one of them out")
    if cut is None and not not_over and not interval.is_over(time.time_ns() // 1000):
        raise NotReady(f"{interval} {NOT_OVER}; --not-over takes what has landed for all of it, --cut leaves it open")

    step = "ingest" if cut is None else CUT

    def propose(head: Head) -> Proposal[Ingested, _Found]:
        try:
            return read(head)
        except InvalidUsage as error:
            if not (removed or columns):  # which are about what was read before
                stopped_by(job, step, interval, error)
            raise

    def read(head: Head) -> Proposal[Ingested, _Found]:
        if cut is None:
            planned = what_to_read(job, head.state, interval, landing_root, wanted)
        else:
            planned = what_to_cut(job, head.state, interval, landing_root, cut)
        request = planned.request
        if request is None:
            return Proposal(None, _Found(planned=planned))
        rerun = head.state.ingested.covers(interval)
        head, fence = job.fenced(head, step, interval)
        batch = job.new_id()
        read = _execute(job, head.state, request, batch, counts_keys=cut is not None)
        entries = [entry for answer in read for entry in answer.entries]
        _stop_on_bad_files(job, head, fence, entries)
        again = corrected(job, head.state, request, batch, first=len(request.files))
        repeated = _repeated(head.state, planned, entries, again)
        _stop_on_duplicates(job, head, fence, repeated, {entry.path for entry in entries})
        read += [IngestAnswer((), tuple(duplicates.skipped(interval, planned.skipped, planned.in_ledger)), None)]
        change = _change(job, fence, request, read, again, batch, head.state)
        if planned.may_ask:
            _ask_if_few_came_back(job, head.state, change)
        _note_dead_letters(job, head.state, request, change)
        why = _why(head.state, request, change, cut)
        became = _Found(again, rerun, [*_bad(entries), *again.bad], planned, repeated)
        if again.left and not (entries or again.files or again.bad or request.replaced.moved) and rerun:
            return Proposal(None, became)
        names = planned.passed_over
        change = replace(change, passed_over=tuple(names[:NAMES_SHOWN]), files_passed_over=len(names))
        return Proposal(replace(change, cut=why, columns=wanted.columns if again.files else ()), became)

    done = job.settle(propose)
    change, result = done.change, {"outcome": str(done.outcome), "version": done.head.version}
    result |= {**_unread_fields(job, done.found, wanted.columns), **_passed_over_fields(job, done.found.planned)}
    result |= _duplicates_fields(job, done.found)
    if change is None:
        return {**result, "changed": NOTHING_CHANGED}
    _note_set_aside(job, done.found.set_aside)
    assert change.cut is not None  # as it was proposed
    result |= {"cut": change.cut.as_dict()}
    result |= {} if cut is None else {"cut_text": change.cut_words, **change.figures}
    return {
        **result,
        "batch": change.batch.id if change.batch else change.snapshot.batch if change.snapshot else None,
        "rows": change.batch.rows if change.batch else 0,
        "files": len(change.sources) - change.replaced,
        "late_applied": change.rows_late_applied,
        "late_moved": change.rows_late_moved,
        "late_discarded": change.rows_late_discarded,
        "bad_files": change.bad_files,
        "left_out": change.rows_left_out,
        **_rerun_fields(change, done.found),
    }


@dataclass(frozen=True)
class _Found:
    """What became of files that were read again, which of them are `gone`, and whether the interval was a `rerun`."""

    again: Corrections = field(default_factory=Corrections)
    rerun: bool = True
    set_aside: Sequence[LedgerEntry] = ()
    planned: Planned = field(default_factory=lambda: Planned(None))
    repeated: Sequence[tuple[LedgerEntry, str]] = ()


def _passed_over_fields(job: Job, planned: Planned) -> dict[str, Any]:
    """Which files were passed over: each is named, up to some."""
    names, count = planned.passed_over[:NAMES_SHOWN], len(planned.passed_over)
    if names:
        job.note(f"{passed_over_words(names, count)}; source.path does not match them")
    return {"passed_over": list(names), "files_passed_over": count} if names else {}


def _duplicates_fields(job: Job, became: _Found) -> dict[str, Any]:
    """Which files have the bytes of another one, and what became of them."""
    pairs = [("counted twice", entry.path, other) for entry, other in became.repeated]
    pairs += [("skipped", file.identity, other) for file, other in became.planned.skipped]
    for what, path, other in pairs[:NAMES_SHOWN]:
        job.note(f"{what}: {path} has the bytes of {other}")
    if len(pairs) > NAMES_SHOWN:
        job.note(f"{len(pairs) - NAMES_SHOWN:,} files more have the bytes of others")
    return {"duplicate_files": len(pairs)} if pairs else {}


def _repeated(
    state: Arrangement, planned: Planned, entries: Sequence[LedgerEntry], again: Corrections
) -> list[tuple[LedgerEntry, str]]:
    """Files that have the bytes of another one of their interval by now, where rows add up."""
    if planned.request is None or not state.collection.landed.source.adds_up:
        return []
    other = [*(file.has for file in again.files), *planned.request.replaced.moved]
    corrections = [entry for entry in other if entry.replay_of is None]
    return duplicates.repeated(planned.request.interval, planned.in_ledger, entries, corrections)


def _stop_on_duplicates(
    job: Job, head: Head, fence: Fence, repeated: Sequence[tuple[LedgerEntry, str]], new: Set[str]
) -> None:
    """Where the collection says so, a file with the bytes of another one of the interval stops it, as bad files do.

    Raises:
        FileRefused: There is one. What a file said that was counted before stays, also where such files are skipped.
    """
    how = head.state.collection.landed.source.duplicate_files
    if (counted_before := [pair for pair in repeated if pair[0].path not in new]) and how != duplicates.COUNT and how:
        entry, other = counted_before[0]
        raise FileRefused(
            f"{entry.path}: has the bytes of {other} now; what it said before stays; remove one of them, or write "
            "duplicate_files: count, which takes both"
        )
    if not repeated or how != duplicates.REFUSE:
        return
    files = [(SourceFile(entry.path, entry.bytes, entry.token, entry.sha256), other) for entry, other in repeated]
    bad = [duplicates.as_duplicate(entry.interval, *pair) for (entry, _), pair in zip(repeated, files, strict=True)]
    otherwise = "remove one of them; duplicate_files: count takes both, skip the first"
    _refuse(job, head, fence, bad, otherwise)


def _unread_fields(job: Job, became: _Found, columns: Sequence[str]) -> dict[str, Any]:
    """Which files could not be read again for columns: each is named, and its rows stay as they are."""
    if not columns:
        return {}
    stays = f"its rows stay as they are in {', '.join(columns)}"
    for entry in became.again.left[:SET_ASIDE_NAMED]:
        job.note(f"left as it was: {entry.path}: {entry.reason}; {stays}")
    if len(became.again.left) > SET_ASIDE_NAMED:
        job.note(f"left as they were: {len(became.again.left) - SET_ASIDE_NAMED:,} files more")
    for path in became.planned.gone[:SET_ASIDE_NAMED]:
        job.note(f"gone: {path}; {stays}")
    if len(became.planned.gone) > SET_ASIDE_NAMED:
        job.note(f"gone: {len(became.planned.gone) - SET_ASIDE_NAMED:,} files more")
    return {"left": len(became.again.left), "gone": len(became.planned.gone)}


def _rerun_fields(change: Ingested, found: _Found) -> dict[str, Any]:
    """What a result says of an interval that had been read before."""
    fields: dict[str, Any] = {"changed": change.differs} if found.rerun else {}
    if change.corrected:
        fields |= {"corrected": change.corrected, "added": change.rows_added, "retracted": change.rows_retracted}
        fields["event_times"] = found.again.event_times
    if found.again.withdraws:
        fields["withdrawn"] = True
    return fields


def _why(state: Arrangement, request: IngestRequest, change: Ingested, cut: Cut | None) -> Cut:
    """Why files were read.

    Of a whole interval (None), and of a cut that somebody asked for, the rules say what else applied to what was taken.
    """
    if cut is not None and (cut.reason is not Reason.EXPLICIT or not request.files):
        return cut
    rules, rows = state.collection.landed.batching, change.batch.rows if change.batch else 0
    size = sum(file.bytes for file in request.files)
    if cut is not None:
        at = moment_of(cut)
        batch = Open(min(at, *(file.landed_at for file in request.files)), rows, size)
        seen = Seen(memory=memory_share(state.collection, size), explicit=True)
        applicable = Cutter.of(rules).cut(batch, at, seen)[1] if rules else None
        return applicable or Cut(Reason.EXPLICIT, opened=batch.opened, at=at)
    if rules is None or (rules.count, rules.bytes) == (None, None):
        return Cut(Reason.END_OF_INPUT)
    batch = Open(0, rows, size)
    applicable = Cutter.of(Batching(count=rules.count, bytes=rules.bytes)).cut(batch, 0, Seen(end_of_input=True))[1]
    return applicable.undated if applicable else Cut(Reason.END_OF_INPUT)


def _execute(
    job: Job, state: Arrangement, request: IngestRequest, batch: str, *, counts_keys: bool
) -> list[IngestAnswer]:
    if not request.files:
        return []
    readable = [file for file in request.files if landing.is_text(file.path)]
    misnamed = [_misnamed(state, request.interval, file) for file in request.files if not landing.is_text(file.path)]
    refused = [IngestAnswer((), tuple(misnamed), None)] if misnamed else []
    if not readable:
        return refused
    runner = job.runner()
    tasks = ingest_tasks(
        state.collection, request, readable, batch=batch, parallelism=runner.parallelism, counts_keys=counts_keys
    )
    if state.collection.landed.source.envelope is Envelope.DEBEZIUM and state.collection.order_by == POSITION:
        job.note(f"order_by: {NO_ORDER}: a collection of another name with order_by: connector is right")
    job.note(f"reading {counted(len(readable), 'file')} in {counted(len(tasks), 'task')}")
    answers: list[IngestAnswer] = runner.run("ingest", tasks)
    for note in sorted({note for answer in answers for note in answer.notes}):
        job.note(note)
    if unfit := sum(answer.images_unfit for answer in answers):
        first = next(answer.first_unfit for answer in answers if answer.images_unfit)
        job.note(f"{counted(unfit, 'before-image')} {UNFIT}, and only their keys are taken; the first: {first}")
    written = sum(part.rows for answer in answers for part in answer.parts)
    expected = sum(entry.rows for answer in answers for entry in answer.entries if entry.status is Status.INGESTED)
    if written != expected:
        raise Corruption(f"ingest wrote {written} rows, its files hold {expected} to apply")
    return answers + refused


def _misnamed(state: Arrangement, interval: Interval, file: SourceFile) -> LedgerEntry:
    """The verdict on a file whose name no task and no ledger can hold."""
    reason = "the bytes of its name are not UTF-8; rename it"
    sha256 = file.sha256 or landing.sha256_of(file.path)
    return set_aside(state.collection, interval, file, sha256, reason)


def _bad(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    return [entry for entry in entries if entry.status is Status.QUARANTINED]


def _note_set_aside(job: Job, bad: Sequence[LedgerEntry]) -> None:
    """Which files do not count, and why: nothing else would say it of them."""
    for entry in bad[:SET_ASIDE_NAMED]:
        job.note(f"set aside: {entry.path}: {entry.reason}; mend it and run the interval again")
    if len(bad) > SET_ASIDE_NAMED:
        job.note(f"set aside: {len(bad) - SET_ASIDE_NAMED:,} files more")


def _note_dead_letters(job: Job, state: Arrangement, request: IngestRequest, change: Ingested) -> None:
    """Say of an interval that is read before its turn why rows are dead letters where nothing is complete yet."""
    if change.rows_late_discarded and request.complete_below > state.complete_below:
        job.note(
            f"{counted(change.rows_late_discarded, 'row')} of {request.interval} happened before "
            f"{format_instant(request.complete_below)} and came too late, as in daily runs: kept as dead letters. "
            "`tidemark late replay` applies them; late: {reemit: ...} or a longer grace would have"
        )


def _stop_on_bad_files(job: Job, head: Head, fence: Fence, entries: Sequence[LedgerEntry]) -> None:
    """Where the collection says so, a file that cannot be taken stops the interval; the ledger remembers why.

    Raises FileRefused, or Contention if another run has taken the file meanwhile.
    """
    bad = _bad(entries)
    if not bad or head.state.collection.landed.source.bad_files != "stop":
        return
    otherwise = "" if head.state.collection.kind.whole_intervals else ", or set bad_files: quarantine"
    _refuse(job, head, fence, bad, f"mend the file and run again{otherwise}")


def _refuse(job: Job, head: Head, fence: Fence, bad: Sequence[LedgerEntry], advice: str) -> NoReturn:
    stopped_by_files(job, head, fence, bad, recorded_run(job, bad))
    more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
    raise FileRefused(f"{bad[0].path}: {bad[0].reason}{more}; {advice}")


def _ask_if_few_came_back(job: Job, state: Arrangement, change: Ingested) -> None:
    """Raise the question whether files were replaced, where fewer than half of their interval's rows came back."""
    from tidemark.jobs.steps.gate_corrections import Files, retracted_share

    if change.batch is None or change.run is None or not change.rows_retracted:
        return
    entries = ledger.load_run(job.store, change.run)
    own = [entry for entry in entries if entry.batch == change.batch.id and entry.is_corrected]
    files = Files(
        parts_table.load(job.store, change.batch.parts), own, [entry for entry in entries if entry not in own]
    )
    before, retracted = retracted_share(job, job.runner(), state, change.batch, files)
    if 2 * (before - retracted) < before:
        raise ask_whether_replaced(
            f"all {counted(change.replaced, 'file')} of {change.fence.interval} are gone, and of their {before:,} "
            f"rows {before - retracted:,} are in the new ones"
        )


def _change(
    job: Job,
    fence: Fence,
    request: IngestRequest,
    answers: Sequence[IngestAnswer],
    again: Corrections,
    batch: str,
    state: Arrangement,
) -> Ingested:
    kind, correctable = state.collection.kind, state.collection.landed.reprocess_for > 0
    parts = [part for answer in answers for part in answer.parts] + again.parts
    entries = [entry for answer in answers for entry in answer.entries]
    on_time = [answer.first_on_time for answer in answers if answer.first_on_time is not None]
    whole = kind.whole_intervals
    learned = request.seal if again.parts or any(entry.rows_late_applied for entry in entries) else None
    learned_at = request.learned_at if whole else learned
    made = None
    if parts:
        made = unsealed_batch(job, batch, request.interval, parts, learned_at=learned_at, as_object=correctable)
        # Before the interval is sealed all of it is here, and rows that are only added belong to it.
        is_sealed = state.complete_below > state.collection.landed.complete_before(request.interval)
        differs = bool(again.files) and (is_sealed or again.retracted > 0)
        made = replace(made, difference=differs, fills=tuple(sorted(request.columns)) if again.files else ())
    said = entries or again.parts or again.withdraws
    rows, effect = sum(part.rows for part in parts), request.effect
    net = rows if effect is Effect.ANNOUNCED else again.added - again.retracted
    snapshot = kind.said_by(batch, request.interval, rows, effect, learned_at, net) if said else None
    if snapshot and not snapshot.rows and effect is Effect.ANNOUNCED:
        job.note(
            f"the full snapshot of {request.interval} has no rows: unless {batch} is quarantined, "
            "its drain removes all that the collection holds"
        )
    recorded = entries
    if correctable:
        table = made.parts if made and isinstance(made.parts, ObjectRef) else None
        recorded = [*contributing(state, request, entries, again, table), *request.replaced.moved]
    before = [file.had for file in again.files]
    now = [*entries, *(file.has for file in again.files)]
    return Ingested(
        fence,
        made,
        recorded_run(job, recorded) if recorded else None,
        sources=sources_of([entry for entry in recorded if entry.replay_of is None]),
        first_on_time=None if whole else min(on_time, default=None),
        rows_late_applied=sum(e.rows_late_applied for e in now) - sum(e.rows_late_applied for e in before),
        rows_late_discarded=sum(e.rows_late_discarded for e in now) - sum(e.rows_late_discarded for e in before),
        bad_files=sum(entry.status is Status.QUARANTINED for entry in entries) + len(again.bad),
        rows_late_moved=sum(e.rows_late_moved for e in now) - sum(e.rows_late_moved for e in before),
        rows_replayed=sum(file.replayed for file in again.files),
        snapshot=snapshot,
        judged_below=None if whole else request.complete_below,
        corrected=len(again.files) + request.replaced.same - request.replaced.withdrawn,
        replaced=request.replaced.names,
        rows_added=again.added,
        rows_retracted=again.retracted,
        merged_below=request.merged_below if again.files or request.replaced.moved else 0,
        undeclared=_undeclared(job, state, answers),
        keys=sum(answer.keys for answer in answers) if fence.step == CUT else None,
        server=_server({server for answer in answers for server in answer.servers}),
        table=_table(job, state.collection, sorted({table for answer in answers for table in answer.tables})),
        rows_left_out=sum(e.rows_left_out for e in now) - sum(e.rows_left_out for e in before),
        images_unfit=sum(answer.images_unfit for answer in answers),
        empty=None if made or again.files or not _is_judged_empty(state.collection, snapshot) else batch,
    )


def _server(servers: Set[str]) -> str:
    """Whose messages files have. InvalidUsage where they are of two: their places are in no order."""
    ordered = sorted(servers, key=len, reverse=True)
    for server in ordered[1:]:
        if another_server(ordered[0], server):
            raise InvalidUsage(two_servers(ordered[0], server))
    return next(iter(ordered), "")


def _table(job: Job, collection: Collection, tables: Sequence[str]) -> str:
    """Of which table the messages of files are, where that is looked at. InvalidUsage where they are of two."""
    before = table = collection.landed.source.table
    if before is None:
        if len(tables) > 1:
            mixed = f"messages belong to two tables, {tables[0]}, and {tables[1]}, and are taken for one"
            job.note(f"{mixed}, as the collection was declared before 0.7.0; {leave_out(tables[0])}")
        return ""
    for name in tables:
        if table and name != table:
            raise InvalidUsage(two_tables(name, table))
        table = name
    return table if table and table != before else ""


def _undeclared(job: Job, state: Arrangement, answers: Sequence[IngestAnswer]) -> tuple[tuple[str, int], ...]:
    """The columns that nothing declares, as far as no ingest before reported them; they are, now."""
    counts = Counter[str]()
    for answer in answers:
        counts.update(dict(answer.undeclared))
    new = sorted((name, files) for name, files in counts.items() if name not in state.undeclared)
    left = max(0, MOST_UNDECLARED - len(state.undeclared))
    for name, files in new[:SET_ASIDE_NAMED]:
        job.note(f"nothing declares column {name}, which {counted(files, 'file')} ha{'s' if files == 1 else 've'}")
    if len(new) > SET_ASIDE_NAMED:
        job.note(f"nor {len(new) - SET_ASIDE_NAMED:,} columns more")
    return tuple(new[:left])


def _is_judged_empty(collection: Collection, snapshot: FullSnapshot | None) -> bool:
    """Whether a gate judges an interval that brought no rows. Where there is no full snapshot, none is compared."""
    if collection.kind.whole_intervals:
        return snapshot is not None and (collection.judges_whole or collection.min_share > 0)
    return collection.judges_whole


def sources_of(entries: Sequence[LedgerEntry]) -> tuple[int, ...]:
    """What a change says of the sources it takes."""
    return tuple(sorted(path_hash(entry.path) for entry in entries))


def recorded_run(job: Job, entries: Sequence[LedgerEntry]) -> LedgerRun:
    """Entries written as a new run of the ledger."""
    return ledger.save_run(job.store, f"ledger/{job.new_id()}.json", entries)


def unsealed_batch(
    job: Job,
    batch: str,
    interval: Interval,
    parts: Sequence[Part],
    *,
    learned_at: int | None,
    as_object: bool = False,
) -> UnsealedBatch:
    """The batch of some parts, at least one.

    Its table is written here, always as an object (`as_object`) if others name it too. `learned_at` is the seal where
    some of its rows are late, replayed or corrected.
    """
    save = parts_table.save_separately if as_object else parts_table.save
    table = save(job.store, f"data/{batch}/parts-{job.new_id()}.json", parts)
    return UnsealedBatch(
        batch,
        interval,
        table,
        len(parts),
        sum(part.rows for part in parts),
        sum(part.file.bytes for part in parts),
        sum(part.digest for part in parts) % DIGEST_MODULUS,
        min(part.first_time for part in parts),
        max(part.last_time for part in parts),
        min(part.first_event_time for part in parts),
        max(part.last_event_time for part in parts),
        learned_at=learned_at,
        verified_parts=verified(parts),
    )

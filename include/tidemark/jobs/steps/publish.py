"""Publish: give tables of others' formats the rows of the collection, as far as it is drained
(docs/decisions/0064).

Three commits in a row, none of which undoes another: our log pins the parts that the table is to name, the table takes
them together with what it says of itself, our log records that and lets go of what no snapshot of the table names. An
attempt that dies between two is gone on from by the next, which finds in the table what was done. What a table holds
depends on its frontier alone, so a second run at the same frontier finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tidemark.errors import Contention, InvalidUsage, TidemarkError
from tidemark.jobs.job import ROUNDS, Job, Outcome
from tidemark.jobs.steps.publish_content import Planner
from tidemark.model.arrangement import Arrangement
from tidemark.model.instant import format_instant
from tidemark.model.publication import (
    Destination,
    Publication,
    Published,
    Publishing,
    TableFormat,
    Unpublished,
    of_format,
)
from tidemark.model.transition import Stale
from tidemark.model.wording import counted
from tidemark.plan.publish import TableHead, Way, check_head, frontier_of, holds
from tidemark.publish.opening import table_of
from tidemark.publish.table import Content, PublishedTable
from tidemark.storage.log.log import Head

Opening = Callable[[Destination, str, str], PublishedTable]


def publish(job: Job, *, again: bool = False, opening: Opening = table_of) -> dict[str, Any]:
    """Bring every table of the collection's declaration up to what is drained; `again` writes them whole.

    A table that cannot be published keeps no other from it; its error is raised in the end. InvalidUsage where none is
    declared, and where a table was changed by others or is not the collection's; Uncertified where the trace gate has
    not passed.
    """
    head = job.log.load()
    name = head.state.collection.name
    if not head.state.collection.publish:
        raise InvalidUsage(
            f"collection {name} declares no table; write publish: {{iceberg: {{table: db.{name}}}}} in its file, then "
            f"`tidemark init FILE`"
        )
    frontier_of(head.state)
    said: dict[str, str] = {}
    outcomes, failed = [], []
    for destination in head.state.collection.publish:
        try:
            outcome, said[destination.format] = _brought_up(job, destination, again, opening)
            outcomes.append(outcome)
        except TidemarkError as error:
            failed.append(error)
    if failed:
        for format, done in said.items():
            job.note(f"{format}: {done}")
        raise failed[0]
    first = next(outcome for outcome in Outcome if outcome in outcomes)
    return {"outcome": str(first), "version": job.log.load().version, **said}


def unpublish(
    job: Job, *, format: TableFormat | None = None, leave: bool = False, opening: Opening = table_of
) -> dict[str, Any]:
    """End the publication in a format (None: in all): the collector may remove what only the table named.

    A table that names files of the collection is taken out of its catalog before, unless it is to be left there, as
    where its catalog is gone for ever; any other stays as it is, on its own. InvalidUsage where nothing is published
    so.
    """
    head = job.log.load()
    state, name = head.state, head.state.collection.name
    ending = [one for one in state.publications if format in (None, one.format)]
    if not ending:
        raise InvalidUsage(f"collection {name} is not published{'' if format is None else f' in {format}'}")
    said: dict[str, str] = {}
    for publication in ending:
        said[publication.format] = f"{publication.table} stays, on its own"
        if publication.pins and leave:
            said[publication.format] = f"{publication.table} was left, and may name files that are gone"
        elif publication.pins:
            table = _table_of(job, state, publication, opening)
            top = table.head(publication.snapshot)
            if top is not None and top.owner != (name, state.incarnation):
                raise InvalidUsage(f"table {table.where} is another one than {name} was published to; say --leave")
            table.drop()
            said[publication.format] = f"{publication.table} was taken out of its catalog"
        done = job.commit_until_fit(partial(_ended, publication))
        head = done.head
    return {"outcome": str(Outcome.APPLIED), "version": head.version, **said}


def _ended(publication: Publication, head: Head) -> Unpublished | None:
    """The end of a publication; None where it has ended. Contention where it was published again since."""
    current = of_format(head.state.publications, publication.format)
    if current not in (None, publication):
        raise Contention(f"{publication.format} table {publication.table} was published meanwhile; run the step again")
    return None if current is None else Unpublished(publication.format)


def _table_of(job: Job, state: Arrangement, publication: Publication, opening: Opening) -> PublishedTable:
    """The table of a publication, by how it is declared."""
    name = state.collection.name
    declared = next((one for one in state.collection.publish if one.format is publication.format), None)
    if declared is None:
        raise InvalidUsage(
            f"{name} is published to {publication.format} table {publication.table}, which its file does not declare "
            "any more; declare it again, so that the table can be taken out of its catalog, or say --leave"
        )
    table = opening(declared, _root(job), name)
    if table.where != publication.table:
        raise InvalidUsage(
            f"{name} is published to {publication.format} table {publication.table}, and its file says {table.where}; "
            f"declare {publication.table} again, so that it can be taken out of its catalog, or say --leave"
        )
    return table


def _root(job: Job) -> str:
    return job.store.url.rstrip("/").rpartition("/")[0]


def _brought_up(job: Job, destination: Destination, again: bool, opening: Opening) -> tuple[Outcome, str]:
    """Bring one table up to what is drained."""
    reason = ""
    for _ in range(ROUNDS):
        head = job.log.load()
        state = head.state
        table = opening(destination, _root(job), state.collection.name)
        previous = of_format(state.publications, destination.format)
        top = table.head("" if previous is None or previous.table != table.where else previous.snapshot)
        check_head(state, previous, table.where, top, again)
        frontier = frontier_of(state)
        if not frontier:
            return Outcome.WAITS, f"{table.where} waits: nothing that can be read is drained yet"
        afresh = again or not _is_pinned(top, previous)
        mark = None if afresh or top is None else top.mark
        if top is not None and holds(state, mark):
            _recorded(job, destination, table, top)
            return Outcome.NOTHING_TO_DO, f"{table.where} holds it up to {format_instant(frontier)}"
        plan = Planner(job, head, destination, table, mark).plan()
        if plan.content.names or afresh:
            # All that are named, not only new ones: another attempt may have let one go since this head was loaded.
            change = Publishing(destination.format, table.where, job.new_id(), plan.pins, afresh=afresh)
            committed = job.log.commit(head, change)
            if isinstance(committed, Stale):
                reason = committed.reason
                job.note(f"stale, planning again: {reason}")
                continue
        try:
            after = table.commit(state.collection, top, plan.mark, plan.content)
        except Contention as error:
            reason = str(error)
            job.note(f"planning again: {reason.removesuffix('; run the step again')}")
            continue
        if not _recorded(job, destination, table, after):
            reason = f"{state.collection.name} was unpublished meanwhile"
            job.note(f"planning again: {reason}")
            continue
        if files := table.tidy():
            job.note(f"removed {counted(files, 'file')} of {table.where} that expired snapshots named")
        return Outcome.APPLIED, f"{table.where} holds it up to {format_instant(frontier)}: {_summary(plan.content)}"
    raise Contention(
        f"lost to others {ROUNDS} times, last: {reason.removesuffix('; run the step again')}; run the step again"
    )


def _summary(content: Content) -> str:
    named = f"{counted(len(content.names), 'part')} named" if content.names else "no new part to name"
    all_named = len(content.names) + len(content.kept)
    match content.way:
        case Way.NAME | Way.NAME_NEW:
            return named
        case Way.APPEND:
            return "new rows appended"
        case Way.MERGE:
            return "changed keys merged"
        case _:
            return f"{counted(all_named, 'part')} named, all other rows copied" if all_named else "written whole"


def _is_pinned(top: TableHead | None, previous: Publication | None) -> bool:
    """Whether all parts that the newest snapshot names are pinned: not after an unpublish that left the table there."""
    names = () if top is None or top.mark is None else top.mark.names
    return set(names) <= {pin.name for pin in ([] if previous is None else previous.pins)}


def _recorded(job: Job, destination: Destination, table: PublishedTable, top: TableHead) -> bool:
    """Record what a table holds, and let go of what none of its snapshots names. False where it names a part that is
    not pinned any more."""
    assert top.mark is not None
    mark, is_pinned = top.mark, True

    def change_for(head: Head) -> Published | None:
        nonlocal is_pinned
        previous = of_format(head.state.publications, destination.format)
        if not (is_pinned := _is_pinned(top, previous)):
            return None
        attempt, pinned = ("", ()) if previous is None else (previous.attempt, tuple(pin.name for pin in previous.pins))
        keeps = tuple(name for name in pinned if name in top.pins)
        if previous is not None and (
            previous.sequence > top.sequence or (previous.snapshot, pinned) == (top.snapshot, keeps)
        ):
            return None
        return Published(
            destination.format, table.where, attempt, top.snapshot, top.sequence, mark.version, mark.seal, keeps
        )

    job.commit_until_fit(change_for)
    return is_pinned

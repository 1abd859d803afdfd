"""Creating a collection and looking at it: its state, what happened, whether it is sound."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, SparkOption, UsageError, register
from tidemark.errors import TidemarkError
from tidemark.model.change import UNMATCHED
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    from tidemark.jobs.queries.consequences import Consequence
    from tidemark.jobs.queries.status import Shelf, Status
    from tidemark.model.collection import Collection
    from tidemark.plan.bounds import Bounds

PANEL = "Collections"
SHOWN_ACCEPTED = 5
"""Acceptances that `status` lists for people."""
UNVERIFIED = "{}, written before 0.6.0, without checksums that reads verify; their next merge writes them"


def add_to(app: typer.Typer) -> None:
    """Make the looks commands of `app`."""
    register(app, "init", landing=True, panel=PANEL)(init)
    register(app, "status", panel=PANEL)(status)
    register(app, "log", panel=PANEL)(log)
    register(app, "verify", panel=PANEL)(verify)


def init(
    call: Call,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A collection file: include/collections/flights.yaml.")],
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="FILE", help="Infer undeclared types from this delta file.")
    ] = None,
    break_derived: Annotated[
        bool,
        typer.Option(
            "--break-derived", help="Also bring in a change that collections derived from this one cannot follow."
        ),
    ] = False,
    spark: SparkOption = None,
) -> None:
    """Create the collection a file declares, or bring a changed declaration in. Types the file leaves open are inferred
    once and frozen: from the first delta file that has landed, or, of a derived collection, from its definition. Lists
    what becomes of each collection that is derived from it."""
    from tidemark.cli.declare import declared, since_when
    from tidemark.config.collection_file import parse
    from tidemark.jobs.queries.consequences import check_unbroken, consequences, files_beside
    from tidemark.jobs.queries.status import status as compute
    from tidemark.jobs.steps.init import declare_collection

    parsed = parse(file)
    job = call.job(parsed.name, spark=spark, step="init", create=True)
    collection, inferred = declared(call, job, parsed, sample)
    if sample is not None and not inferred:
        output.note(f"{sample} is not read: no type is left to infer")
    following: list[Consequence] = []

    def check(new: Collection) -> None:
        following[:] = consequences(job, new, files_beside(file))
        if not break_derived:
            check_unbroken(new.name, following)

    before = job.log.load().arrangement
    result = declare_collection(job, collection, check)
    seen = compute(job.log.load())
    since = since_when(call, before, job.log.load().state)
    read = () if collection.is_derived else collection.landed.inputs
    types = {column.name: str(column.type) for column in (*collection.columns, *read)}
    derived = [each.as_dict() for each in following]
    new, why = ({name: each[at] for name, each in inferred.items()} for at in (0, 1))
    about = {"root": job.store.url, "types": types, "inferred": new, "why": why, "derived": derived}
    document = {"step": "init", **result, **about, "in_files": list(map(asdict, since)), **_frontiers(seen)}
    said = [f"{result['outcome']}: collection {collection.name} in {job.store.url}"]
    if inferred:
        said += ["inferred, to be pasted into the file where it shall be otherwise:", *_pasted(inferred)]
    if collection.is_derived:
        said.append(f"key {', '.join(column.name for column in collection.key)}")
    said += [f"{each.collection}: {each.words}" for each in following]
    said += [column.words(collection.name) for column in since]
    call.emit(document, *said, output.facts(_frontier_lines(seen)), f"next: {seen.next_step}")


def _pasted(inferred: dict[str, tuple[str, str]]) -> list[str]:
    """Types as a collection file declares them, each with why it is so."""
    typed = [f"  {name}: " + (json.dumps(each[0]) if "," in each[0] else each[0]) for name, each in inferred.items()]
    width = max(map(len, typed))
    return ["columns:", *(f"{line:<{width}}  # {why}" for line, (_, why) in zip(typed, inferred.values(), strict=True))]


def status(
    call: Call,
    collection: Annotated[
        str | None, typer.Argument(metavar="COLLECTION", help="The collection's name; without it, all below the root.")
    ] = None,
) -> None:
    """Frontiers, what is unsealed, the trace by level, debt, late rows, write amplification, and the next step."""
    if collection is not None:
        seen = call.opened(collection).status()
        call.emit(seen.as_dict(), f"{collection}, version {seen.version}", output.facts(_lines(seen)))
        return
    all_seen, failed = _seen(call)
    headings = ("collection", "version", "complete below", "known up to", "since", "unsealed rows", "next")
    rows = [
        (
            seen.collection,
            seen.version,
            *(format_instant(time) for time in (seen.complete_below, seen.seal, seen.since)),
            seen.unsealed.rows,
            seen.next_step,
        )
        for seen in all_seen
    ]
    documents = [seen.as_dict() for seen in all_seen]
    if failed is None:
        call.emit({"collections": documents}, output.table(headings, rows))
        return
    call.done += documents
    if rows and not call.settings.as_json:
        call.emit({}, output.table(headings, rows))
    raise failed


def _seen(call: Call) -> tuple[list[Status], TidemarkError | None]:
    """Every collection below the root that can be read, and why the first cannot that is damaged or too new."""
    seen, failed = [], None
    for name in call.collections():
        try:
            seen.append(call.opened(name).status())
        except TidemarkError as error:
            failed = failed or type(error)(f"collection {name}: {error}")
    return seen, failed


def log(
    call: Call,
    collection: CollectionArgument,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="How many versions, newest first.")] = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="Also attempts that started, and holds of derived collections.")
    ] = False,
) -> None:
    """The versions of a collection, newest first: what changed, when, and who wrote it."""
    entries = call.opened(collection).history(number, attempts=everything)
    rows = [(entry.version, format_instant(entry.written_at), entry.in_full, entry.writer) for entry in entries]
    document = {"collection": collection, "versions": [entry.as_dict() for entry in entries]}
    folded = sum(newer.version - older.version - 1 for newer, older in pairwise(entries))
    said = f"{output.counted(folded, 'version')} of attempts and holds between them; --all shows them"
    call.emit(document, output.table(("version", "when", "change", "writer"), rows), *([said] if folded else []))


def verify(
    call: Call,
    collection: CollectionArgument,
    data: Annotated[
        bool, typer.Option("--data", help="Re-read every row of every part, and judge recent gates' evidence again.")
    ] = False,
    definition: Annotated[
        bool,
        typer.Option(
            "--definition",
            help="Recompute a derived collection at each frontier that its inputs keep, and compare. "
            "Of many windows some are recomputed.",
        ),
    ] = False,
    spark: SparkOption = None,
) -> None:
    """Check that storage still contains what the state promises. Exit code 1 if anything was found."""
    from tidemark.cli.derived import verify_definition
    from tidemark.jobs.queries.verify import verify as check

    job = call.job(collection, spark=spark, step="verify")
    if definition and data:
        raise UsageError("--definition and --data are two questions; ask one at a time")
    if definition:
        verify_definition(call, job, collection)
        return
    with output.working(f"verifying {collection}") as advance:
        report = check(job, data=data, progress=advance)
    read = ""
    if data:
        parts = f"{report.parts_read:,} of {output.counted(report.parts, 'part')}"
        read = f", {parts} and {output.counted(report.rows_read, 'row')} read again"
        read += f", {output.counted(report.validations, 'validation')} repeated" if report.validations else ""
    objects = f"{output.counted(report.batches, 'batch')} of {output.counted(report.objects, 'object')}"
    looked = f"version {report.version}: {objects}{read}"
    if report.unverified_parts:
        looked += f"; {UNVERIFIED.format(output.counted(report.unverified_parts, 'part'))}"
    if report.sound:
        call.emit(report.as_dict(), f"sound; {looked}")
        return
    rows = [(finding.rule, finding.subject, finding.detail) for finding in report.findings]
    call.emit(report.as_dict(), output.table(("rule", "of", "found"), rows), looked)
    count = output.counted(len(rows), "finding")
    output.note(f"error: {count}: storage does not hold what was written; run no further step of {collection}")
    raise typer.Exit(1)


def _follows(seen: Status) -> list[tuple[str, str]]:
    """How a derived collection follows its inputs; nothing of one that lands."""
    if seen.follows is None:
        return []
    phrases = {"all": "all of it", "behind": "it has more", "lags": "waited for"}
    lines = [
        (
            "follows" if at == 0 else "",
            f"{one.name} to {format_instant(one.consumed) if one.consumed else 'nothing yet'} ({phrases[one.status]})",
        )
        for at, one in enumerate(seen.follows.inputs)
    ]
    waits = f"{seen.follows.waits_for}: {seen.follows.why}" if seen.follows.waits_for else "nothing"
    return [*lines, ("waits for", waits), ("last run", seen.follows.last or "none yet")]


def _frontiers(seen: Status) -> dict[str, Any]:
    from tidemark.jobs.queries.status import FRONTIERS

    return {key: value for key, value in seen.as_dict().items() if key.removesuffix("_text") in FRONTIERS}


def _frontier_lines(seen: Status) -> list[tuple[str, str]]:
    from tidemark.jobs.queries.status import frontiers_of

    promises = frontiers_of(derived=seen.derived)
    times = {name: format_instant(getattr(seen, name)) for name in promises}
    return [(name.replace("_", " "), f"{times[name]}  {promise}") for name, promise in promises.items()]


def _lines(seen: Status) -> list[tuple[str, str]]:
    unsealed = _shelf(seen.unsealed)
    if seen.ahead.batches:
        unsealed += f"; ahead: {_shelf(seen.ahead)}"
    if seen.remembered.batches:
        unsealed += f"; remembered: {_shelf(seen.remembered)}"
    due, reading = output.counted(seen.debt.compactions, "compaction"), output.counted(seen.debt.rows, "row")
    debt = f"{due} due, reading {reading}" if seen.debt.compactions else "none"
    ratio = "nothing ingested"
    if seen.write_amplification is not None:
        written = f"{_size(seen.bytes_drained)} drained + {_size(seen.bytes_compacted)} compacted"
        ratio = f"{seen.write_amplification} = ({written}) / {_size(seen.bytes_ingested)} ingested"
    landed = [("late", _late(seen))]
    landed += (
        [("left out", f"{output.counted(seen.left_out, 'row')} that `only` did not take")] if seen.left_out else []
    )
    if seen.images_unmatched:
        landed.append(("before-images", f"{seen.images_unmatched:,} {UNMATCHED}"))
    waiting = [("waiting for", seen.waiting_for.in_full if seen.waiting_for else "nothing")]
    return [
        *_frontier_lines(seen),
        *_follows(seen),
        ("unsealed", unsealed),
        *((f"trace level {level}", _shelf(shelf)) for level, shelf in seen.levels.items()),
        ("live batches", _bounded(seen.bounds.live_batches, seen.bounds.live_bound)),
        ("debt", debt),
        ("written" if seen.derived else "ingested", f"{seen.rows_ingested:,} rows"),
        *([] if seen.derived else landed),
        ("write amplification", ratio),
        ("rows written", _rows_written(seen.bounds)),
        ("readable", seen.readable),
        *_correctable(seen),
        ("holds", ", ".join(f"{hold.name} at {format_instant(hold.since)}" for hold in seen.holds) or "none"),
        *([] if seen.derived else waiting),
        ("not certified", ", ".join(batch[:12] for batch in seen.uncertified) or "nothing"),
        ("quarantined", ", ".join(batch[:12] for batch in seen.quarantined) or "nothing"),
        *_accepted(seen),
        *(("published to" if at == 0 else "", one.words) for at, one in enumerate(seen.published)),
        *(
            [("unverified", UNVERIFIED.format(output.counted(seen.unverified_parts, "part")))]
            if seen.unverified_parts
            else []
        ),
        ("next", seen.next_step),
    ]


def _accepted(seen: Status) -> list[tuple[str, str]]:
    """What people accepted although expectations failed, newest first; nothing where nobody did."""
    newest = [one.words for one in reversed(seen.accepted[-SHOWN_ACCEPTED:])]
    left = len(seen.accepted) - len(newest)
    more = [f"and {left:,} before; --json shows all"] if left else []
    return [("accepted" if at == 0 else "", line) for at, line in enumerate([*newest, *more])]


def _correctable(seen: Status) -> list[tuple[str, str]]:
    """From when intervals can be run again, and what that costs; nothing where none can."""
    if seen.correctable_from is None:
        return []
    cost = f"; {_size(seen.reprocess_bytes)} kept for that alone" if seen.reprocess_bytes is not None else ""
    return [("correctable", f"intervals that begin at {format_instant(seen.correctable_from)} or later{cost}")]


def _bounded(value: float, bound: float | None) -> str:
    return f"{value}" if bound is None else f"{value} of at most {bound} after a compaction"


def _rows_written(bounds: Bounds) -> str:
    if bounds.written is None:
        return "nothing drained"
    return (
        f"{_bounded(bounds.written, bounds.written_bound)}, per row drained; for equal batches at least {bounds.least}"
    )


def _late(seen: Status) -> str:
    moved = f" ({seen.late_moved:,} moved to the seal)" if seen.late_moved else ""
    replayed = f" ({seen.late_replayed:,} replayed)" if seen.late_replayed else ""
    return f"{seen.late_applied:,} applied{moved}, {seen.late_discarded:,} discarded{replayed}"


def _shelf(shelf: Shelf) -> str:
    rows, batches = output.counted(shelf.rows, "row"), output.counted(shelf.batches, "batch")
    return f"{rows} in {batches}, {_size(shelf.bytes)}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{int(count)} B"
        count /= 1000
    return f"{count:.3g} TB"

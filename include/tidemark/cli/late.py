"""Late rows and dead letters: what came of days that were complete, and applying after all what was not applied.

`tidemark late COLLECTION` is short for `tidemark late list COLLECTION`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, SparkOption, register
from tidemark.cli.options import DateOption, FromOption, LowerOption, ToOption, UpperOption, instant, within
from tidemark.jobs.steps.declared import STEPS
from tidemark.model.instant import format_instant
from tidemark.model.landed import FIRST_ROW

if TYPE_CHECKING:
    from rich.console import RenderableType

PANEL = "Collections"
FileOption = Annotated[
    str | None, typer.Option("--file", metavar="TEXT", help="Only rows of files whose path contains this.")
]
BatchOption = Annotated[
    str | None, typer.Option("--batch", metavar="BATCH", help="Only rows of this batch, or of what it replayed.")
]


class Late(TyperGroup):
    """The late commands; `list` where none of them is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def add_to(app: typer.Typer) -> None:
    """Make the late commands of `app`."""
    group = typer.Typer(cls=Late, help="Rows that came late (late COLLECTION), and replaying dead letters.")
    register(group, "list")(list_)
    register(group, "replay", step=STEPS["replay"])(replay)
    app.add_typer(group, name="late", rich_help_panel=PANEL)


def list_(
    call: Call,
    collection: CollectionArgument,
    lower: LowerOption = None,
    upper: UpperOption = None,
    date: DateOption = None,
    first: FromOption = None,
    last: ToOption = None,
    file: FileOption = None,
    batch: BatchOption = None,
    happened_from: Annotated[
        int | None,
        typer.Option("--happened-from", parser=instant, metavar="TIME", help="Only rows that happened then or later."),
    ] = None,
    happened_before: Annotated[
        int | None,
        typer.Option("--happened-before", parser=instant, metavar="TIME", help="Only rows that happened before."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Most rows to list; 0 counts only.")] = 50,
) -> None:
    """List late source rows: why and by how much they were late, and what happened to them."""
    from tidemark.jobs.queries.late import Happened, LateRows, check_named, late_rows

    times = (happened_from, happened_before)
    happened = None if times == (None, None) else Happened(*times)
    job = call.job(collection)
    head = job.log.load()
    some = within(head.state.collection, lower, upper, date, first, last)
    check_named(job.store, head.state, file, batch)
    found: LateRows = late_rows(
        job.store, head.state, intervals=some, path=file, batch=batch, happened=happened, limit=limit
    )
    applied = f"{output.counted(found.applied, 'late row')} applied{_of(found.moved, 'moved to the seal')}"
    discarded = f"{found.discarded:,} discarded{_of(found.replayed, 'replayed')}"
    shown: list[RenderableType] = [f"{applied}, {discarded}, in {output.counted(len(found.files), 'file')}"]
    if found.files:
        headings = ("file", "interval", "batch", "applied", "moved", "discarded", "replayed", "by")
        shown.append(output.table(headings, [_file_row(count) for count in found.files]))
    if found.rows:
        counted = FIRST_ROW[head.state.collection.landed.source.format]
        rows = [_late_row(row, *counted) for row in found.rows]
        shown.append(output.table(list(rows[0]), [tuple(row.values()) for row in rows]))
        left = found.applied + found.discarded - len(found.rows)
        shown += [f"{left:,} more; --limit {limit * 10} shows more"] if left else []
    if found.discarded > found.replayed:
        shown.append(f"dead letters can be applied after all: tidemark late replay {collection}")
    call.emit({"collection": collection, "version": head.version, **found.as_dict()}, *shown)


def replay(
    call: Call,
    collection: CollectionArgument,
    lower: LowerOption = None,
    upper: UpperOption = None,
    date: DateOption = None,
    first: FromOption = None,
    last: ToOption = None,
    *,
    path: str | None,
    batch: str | None,
    as_now: bool,
    spark: SparkOption = None,
) -> None:
    """The step `replay`, reported in letters."""
    from tidemark.jobs.queries.late import check_named
    from tidemark.jobs.queries.status import next_step
    from tidemark.jobs.steps.replay import replay as step

    job = call.job(collection, spark=spark, step="replay")
    state = job.log.load().state
    some = within(state.collection, lower, upper, date, first, last)
    check_named(job.store, state, path, batch)
    with output.working(f"replaying dead letters of {collection}"):
        result = step(job, intervals=some, path=path, batch=batch, as_now=as_now)
    following = next_step(job.log.load().state)
    said = f"{result['outcome']}: {output.counted(result['rows'], 'dead letter')} applied"
    if result["rows"]:
        files, name = output.counted(result["files"], "file"), result["batch"][:12]
        said += f"{_of(result['moved'], 'moved to the seal')}, of {files}, as batch {name}, version {result['version']}"
    left = [f"left: {result['reason']}"] if result["left"] else []
    document = {"step": "replay", "collection": collection, **result, "next_step": following}
    call.emit(document, said, *left, f"next: {following}")


def _of(count: int, what: str) -> str:
    return f" ({count:,} {what})" if count else ""


def _file_row(count: Any) -> tuple[Any, ...]:
    batches = ", ".join(batch[:12] for batch in count.replayed_by)
    counts = (count.applied, count.moved, count.discarded, count.replayed)
    return (count.path, count.interval, (count.batch or "")[:12], *counts, batches)


def _late_row(row: dict[str, Any], what: str, first: int) -> dict[str, Any]:
    """A late row for people: its fate first, then what it said, then where it is in its file, whose `first` row is that
    line or row."""
    replayed = (row["_replayed_by"] or "")[:12]
    fate = {
        "reason": row["_reason"],
        "lateness": output.duration(row["_lateness"]),
        "event time": format_instant(row["_original_event_time"]),
        "applied": "yes" if row["_applied"] else f"by {replayed}" if replayed else "no",
    }
    own = {*fate, what}
    said = {f"{name} (column)" if name in own else name: of for name, of in row.items() if not name.startswith("_")}
    return fate | said | {what: row["_row"] + first}

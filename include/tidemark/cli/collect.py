"""`tidemark collect`: what could go and when, and the removal of what has waited for long enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, UsageError, register
from tidemark.cli.steps import PANEL
from tidemark.jobs.steps.declared import STEPS

if TYPE_CHECKING:
    from tidemark.jobs.steps.collect import Report
    from tidemark.plan.collect import Garbage

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the plan; write and remove nothing.")]
NowOption = Annotated[
    bool, typer.Option("--now", help="Do not wait for the graces. Needs --nothing-else-runs as well.")
]
AloneOption = Annotated[
    bool,
    typer.Option(
        "--nothing-else-runs",
        help="Confirm that no step and no reader uses the collection: --now would remove objects they need.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Make `collect` a command of `app`."""
    register(app, "collect", panel=PANEL, step=STEPS["collect"])(collect)


def collect(
    call: Call,
    collection: CollectionArgument,
    keep_versions: int,
    dry_run: DryRunOption = False,
    now: NowOption = False,
    nothing_else_runs: AloneOption = False,
) -> None:
    """The step `collect`, and more than a run of it may: a look at what it would do, and doing so at once."""
    from tidemark.jobs.steps.collect import AT_ONCE, GRACES
    from tidemark.jobs.steps.collect import collect as step

    if now and not nothing_else_runs:
        raise UsageError(
            "--now takes objects from under whatever reads or writes them; if nothing does, add --nothing-else-runs"
        )
    job = call.job(collection, step="collect", dropped=True)
    with output.working(f"collecting {collection}") as advance:
        report = step(job, keep=keep_versions, graces=AT_ONCE if now else GRACES, dry_run=dry_run, progress=advance)
    entries = [asdict(entry) | {"wait": report.wait(entry)} for entry in report.listed.entries]
    document = {"step": "collect", "collection": collection, "dry_run": dry_run, **report.summary()}
    call.emit({**document, "entries": entries}, *_shown(report, dry_run))


def _shown(report: Report, dry_run: bool) -> Iterable[Any]:
    """The plan by reason, what was done, and where the plan can be read."""
    said = report.summary()
    waits = {reason: [entry for entry in report.listed.entries if entry.why is reason] for reason in _reasons(report)}
    rows = [_row(report, str(reason), entries) for reason, entries in waits.items()]
    if rows:
        yield output.table(("what may go", "objects", "bytes", "e.g.", "when"), rows)
    removed = said["versions_removed"] + said["objects_removed"]
    yield (
        f"removed: {output.counted(removed, 'object')} ({said['bytes_removed']:,} bytes); "
        f"waiting: {output.counted(said['waiting'], 'object')} ({said['bytes_waiting']:,} bytes); "
        f"versions kept: {said['oldest_version']:,} to {said['version']:,}"
    )
    if said["failed"]:
        yield f"{output.counted(said['failed'], 'object')} could not be removed now; the next run tries again"
    if said["left_out"]:
        yield f"{output.counted(said['left_out'], 'object')} more for the next plan: this one is full"
    if dry_run and rows:
        yield "nothing was written or removed; what no plan has listed before waits from the first run that is not dry"
    if said["distrusted"]:
        yield f"{said['distrusted']}: what goes by age waits as if it was listed now"
    if said["plan"]:
        yield f"plan: {said['plan']}"


def _reasons(report: Report) -> list[Any]:
    return list(dict.fromkeys(entry.why for entry in report.listed.entries))


def _row(report: Report, reason: str, entries: list[Garbage]) -> tuple[str, int, str, str, str]:
    removed = set(report.removed)
    left = [report.wait(entry) for entry in entries if entry not in removed]
    when = "gone" if not left else "now" if not max(left) else f"in {_range(min(left), max(left))}"
    return reason, len(entries), f"{sum(entry.bytes for entry in entries):,}", entries[0].key, when


def _range(least: int, most: int) -> str:
    first, last = output.duration(least), output.duration(most)
    return first if first == last else f"{first} to {last}"

"""What is asked of derived collections alone: how they are computed and why, and whether they are what they should."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, register
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    from tidemark.jobs.job import Job
    from tidemark.jobs.queries.definition import DefinitionReport, Frontier

PANEL = "Collections"
_MODES = {
    "by_row": "by row: from the rows of its input that changed, and nothing else",
    "by_key": "by key: from the groups or join keys that changed rows touch, and nothing else",
    "whole": "whole: from all rows of all inputs",
}

_PLACES = {
    "here": "in this process",
    "key_ranges": "by executors, each a range of keys",
    "shuffle": "by executors, after a shuffle",
    "queries": "by Spark SQL",
}


def add_to(app: typer.Typer) -> None:
    """Make `explain` a command of `app`."""
    register(app, "explain", landing=True, panel=PANEL)(explain)


def explain(
    call: Call,
    collection: Annotated[
        str,
        typer.Argument(
            metavar="COLLECTION|FILE",
            help="A derived collection, or a file, also of a collection that is not created yet.",
        ),
    ],
    queries: Annotated[bool, typer.Option("--queries", help="Also show the queries.")] = False,
) -> None:
    """Explain how a derived collection is computed, why not cheaper, and what its next run does.

    Of a file it also says what `tidemark init` would change, and what becomes of each collection that is derived from
    it. Starts Spark only to find the types of columns that would change.

    Example: tidemark explain delays_by_carrier
    """
    report = _of_file(call, collection) if _is_file(collection) else _of_collection(call, collection)
    explained = _explained(report, queries) if "mode" in report else ()
    call.emit(report, *explained, *_changes(report))


def _changes(report: dict[str, Any]) -> Iterable[str]:
    """What `init` would change, and what becomes of what is derived."""
    if "columns" in report:
        changed = "; ".join(report["columns"]) or "no column changes"
        yield f"{report['collection']}, by `tidemark init`: {changed if report['version'] else 'created'}"
    yield from (f"{each['collection']}: {each['words']}" for each in report.get("derived", ()))


def _is_file(given: str) -> bool:
    return given.endswith((".yaml", ".yml")) or "/" in given or Path(given).is_file()


def _of_collection(call: Call, name: str) -> dict[str, Any]:
    from tidemark.jobs.queries.explain import explain as question

    return question(call.job(name, step="explain"))


def _of_file(call: Call, path: str) -> dict[str, Any]:
    from tidemark.cli.declare import check_inputs, declared
    from tidemark.config.collection_file import parse
    from tidemark.config.derived_file import DerivedFile
    from tidemark.jobs.queries.consequences import explain_change
    from tidemark.jobs.queries.dependents import derived_from
    from tidemark.jobs.queries.explain import explain as question
    from tidemark.jobs.queries.explain import explain_declared
    from tidemark.jobs.queries.locate import collections
    from tidemark.jobs.steps.init import derived_collection

    file = parse(path)
    job = call.job(file.name, step="explain", create=True)
    if not isinstance(file, DerivedFile):
        collection, _ = declared(call, job, file, None)
        return explain_change(job, path, collection)
    check_inputs(call, file)
    current = job.log.load().arrangement
    if current is not None and current.collection.is_derived and current.collection.derived == file.origin:
        report = question(job)
    else:
        report = explain_declared(job, file)
    if any(derived_from(job, file.name, collections(call.root))):
        report |= explain_change(job, path, derived_collection(job, file))
    return report


def _explained(report: dict[str, Any], queries: bool) -> Iterable[Any]:
    yield f"{report['collection']} is computed {_MODES[report['mode']]}"
    lines = [("refresh", report["refresh"]), ("key", ", ".join(report["key"]) or "none shown: declare it")]
    lines += [("windows" if at == 0 else "", line) for at, line in enumerate(report["windows"])]
    if report["file"]:
        lines.append(("python", report["file"]))
    if report["mode"] == "by_key" and not report["file"]:
        lines.append(
            ("sums", "are subtracted" if report["subtracts"] else "are recomputed for the groups that changed")
        )
    lines += [("computed" if at == 0 else "", line) for at, line in enumerate(_ways(report["ways"]))]
    lines += [("why" if at == 0 else "", why) for at, why in enumerate(report["why"])]
    for at, one in enumerate(report["inputs"]):
        consumed = one["consumed_text"] or "nothing yet"
        lines.append(("inputs" if at == 0 else "", f"{one['input']}: consumed to {consumed}, {_usable(one)}"))
    yield output.facts([*lines, ("next run", _next(report["next"]))])
    if queries:
        yield from (f"-- {name}\n{query}" for name, query in _flat(report["queries"]))


def _ways(ways: dict[str, Any] | None) -> Iterable[str]:
    """By what, and where."""
    if ways is None:
        return
    if not ways["kernel"]:
        yield f"by Spark SQL{': ' + ways['why'][0] if ways['why'] else ''}"
        yield from ways["why"][1:]
        return
    first, changes = (", else ".join(_PLACES[place] for place in ways[of]) for of in ("first", "changes"))
    yield f"by the {ways['kernel']} kernel, where it is cheapest for so many rows"
    yield f"first: {first}"
    yield f"changes: {changes}"
    yield from ways["why"]


def _usable(one: dict[str, Any]) -> str:
    return f"readable to {one['usable_text']}" if one["usable_text"] else "not readable yet"


def _next(following: dict[str, Any] | None) -> str:
    if following is None:
        return "after `tidemark init`, the first build: whole"
    if following["does"] == "redefines":
        rows = output.counted(following["rows"], "row")
        return (
            f"after `tidemark init`, whole ({following['why']}): reads {rows} at rest of its inputs, and writes by how "
            "much the answer differs, at the next frontier; what was recorded below stays"
        )
    if following["does"] == "nothing":
        return f"nothing to do: {following['why']}"
    if following["does"] == "waits":
        return f"waits for {following['waits_for']}: {following['why']}"
    why = f" ({following['why']})" if following["why"] else ""
    reach = _reach(following)
    if following.get("history_lost"):
        frontiers = output.counted(following["history"], "frontier")
        reach += f"; history is not there at {following['history_lost']:,} of {frontiers}, as retention has merged it"
    return f"corrects to {following['upper_text']}, {following['mode'].replace('_', ' ')}{why}{reach}"


def _reach(following: dict[str, Any]) -> str:
    """How many rows the next run reads, and how many windows it computes, as far as that is known."""
    is_counted = "rows_read" in following
    reads = f"; reads {output.counted(following['rows_read'], 'row')} at rest" if is_counted else ""
    if "changed_rows" not in following:
        return reads
    changed = output.counted(following["changed_rows"], "row")
    reads = f"{reads}, of changes at most {changed}" if is_counted else f"; reads at most {changed} that changed"
    if "touched_windows" in following:
        return f"{reads}, and computes at most {following['touched_windows']:,} windows"
    return f"{reads}, and computes for each {following['touched']}" if "touched" in following else reads


def _flat(queries: dict[str, Any], within: str = "") -> Iterable[tuple[str, str]]:
    for name, query in queries.items():
        if isinstance(query, dict):
            yield from _flat(query, f"{within}{name}.")
        elif isinstance(query, str):
            yield f"{within}{name}", query


def verify_definition(call: Call, job: Job, name: str) -> None:
    """Show whether a collection is what its definition says; exit code 1 if it is not, or if that is not known."""
    from tidemark.jobs.queries.definition import verify_definition as question

    with output.working(f"recomputing {name}"):
        report = question(job, every=True)
    call.emit(report.as_dict(), *_compared(report))
    if not report.sound:
        rows = output.counted(sum(len(one.differing) for one in report.frontiers), "row")
        output.note(f"error: {rows} shown that differ; `tidemark correct {name} --check` puts them right")
        raise typer.Exit(1)
    if not report.checked:
        why = report.frontiers[0].not_compared
        output.note(f"error: {why}; `tidemark correct {name}` records a frontier that can be")
        raise typer.Exit(1)


def _compared(report: DefinitionReport) -> Iterable[Any]:
    rows = [(format_instant(one.upper - 1), one.not_compared or _found(one)) for one in report.frontiers]
    yield output.table(("as known at", ""), rows)
    wrong = [
        (format_instant(one.upper - 1), ", ".join(f"{key}={value}" for key, value in row.row), row.desired, row.stored)
        for one in report.frontiers
        for row in one.differing
    ]
    if wrong:
        yield output.table(("as known at", "row", "should be there", "is there"), wrong)
    looked = f"version {report.version}: {output.counted(report.checked, 'frontier')} computed again"
    found = "cannot be checked" if not report.checked else "as defined" if report.sound else "not as defined"
    yield f"{found if report.whole else f'{found}, as far as was looked'}; {looked}"


def _found(one: Frontier) -> str:
    """What was found at a frontier, and where not all was looked at, at what."""
    found = "as defined" if one.sound else f"{len(one.differing)} differ"
    return f"{found}; {one.left}" if one.left else found

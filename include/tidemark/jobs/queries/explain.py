"""How a derived collection is computed, and why so: by its definition and its inputs as they are. Starts no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from tidemark.config.derived_file import DerivedFile
from tidemark.definition.computation import Computation, Input, shape_of
from tidemark.definition.recipe import Recipe
from tidemark.definition.ways import ways_of
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.derived import (
    as_computed,
    changed_rows,
    computation,
    has_changes,
    inputs_of,
    mode_of,
    opened,
    planned,
    recipe_of,
    recipe_of_file,
)
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection
from tidemark.model.derived import Derived, Mode
from tidemark.model.instant import format_instant
from tidemark.plan.correct import CorrectRequest, InputState, Waits, history_lost
from tidemark.spark.derive.user_code import file_of


def explain(job: Job) -> dict[str, Any]:
    """The mode in which changes are computed and, a line each, why in no cheaper one; by which kernel, or by Spark SQL,
    and where (`ways`: the cheapest place that takes the rows); what the next run does; how far
    each input is consumed and can be; the queries that are run.

    Raises InvalidUsage if the collection is not derived, and for a definition that is refused, or is not where those in
    Python are looked for.
    """
    head = job.log.load()
    state = head.state
    collection = state.collection
    inputs = opened(job, collection.derived)
    recipe = recipe_of(collection.derived, inputs)
    key = [column.name for column in collection.key]
    report = _computed(collection.name, collection.derived, recipe, inputs, state)
    state = replace(state, collection=as_computed(collection, recipe, inputs))
    next_run = _next(job, state, inputs, recipe)
    return {"collection": collection.name, "version": head.version, "key": key, **report, "next": next_run}


def explain_declared(job: Job, file: DerivedFile) -> dict[str, Any]:
    """As `explain`, of a collection as its file declares it. Where it was created by another definition, the next run
    is the one that follows this one; where it was not created, nothing is said of it. Its inputs must be there. Raises
    InvalidUsage at the file's line, as `recipe_of_file`."""
    inputs = opened(job, file.origin)
    recipe = recipe_of_file(file, inputs)
    head = job.log.load()
    current = head.arrangement
    state = current if current is not None and current.collection.is_derived else None
    try:
        report = _computed(file.name, file.origin, recipe, inputs, state)
    except InvalidUsage as error:
        raise file.refusal_of_definition(str(error)) from None
    shown = file.key or (recipe.key if recipe else None) or ()
    report |= {"next": None if state is None else _next_by(job, state, head.version, inputs, recipe, file.origin)}
    return {"collection": file.name, "version": 0 if state is None else head.version, "key": list(shown), **report}


def _next_by(
    job: Job, state: Arrangement, version: int, inputs: tuple[InputState, ...], recipe: Recipe | None, derived: Derived
) -> dict[str, Any]:
    """What the next run does of a collection that is to be declared otherwise than its state of that version is. By
    another definition it reads all rows of the inputs, and writes by how much the answer differs, at its frontier;
    what was recorded before stays as it was."""
    was = state.collection.derived
    if was.fingerprint == derived.fingerprint:
        return _next(job, replace(state, collection=replace(state.collection, origin=derived)), inputs, recipe)
    other = "inputs are others" if was.inputs != derived.inputs else "definition is another"
    given = [(one.name, one.state) for one in inputs if one.state is not None]
    read = [Input(name, job.neighbour(name).store.url, input_, input_.seal) for name, input_ in given if input_.seal]
    rows = sum(changed_rows(job, one) for one in read)
    return {"does": "redefines", "mode": str(Mode.WHOLE), "why": f"the {other} than in version {version}", "rows": rows}


def _computed(
    name: str, derived: Derived, recipe: Recipe | None, inputs: Sequence[InputState], state: Arrangement | None = None
) -> dict[str, Any]:
    """How a definition is computed over its inputs; of one in Python, from which file."""
    mode, why = mode_of(derived, recipe, ())
    lines = list(recipe.why) if recipe else [why] if why else []
    lines += [line for given in inputs if given.state for line in _scattered(given.name, given.state.collection)]
    return {
        "refresh": str(derived.refresh),
        "file": file_of(name, derived.definition) if derived.definition.function else None,
        "mode": str(mode),
        "why": lines,
        "windows": list(_windows(derived)),
        "ways": _ways(recipe, inputs),
        "subtracts": bool(recipe and recipe.by_key and recipe.by_key.delta),
        "inputs": [_input_entry(state, given) for given in inputs],
        "queries": _queries(recipe),
    }


def _ways(recipe: Recipe | None, inputs: Sequence[InputState]) -> dict[str, Any] | None:
    """By what it is computed, and where; None for a definition in Python."""
    if recipe is None:
        return None
    found = ways_of(recipe, [shape_of(one.name, one.state.collection) for one in inputs if one.state])
    first, changes = ([str(place) for place in places] for places in (found.first, found.changes))
    return {"kernel": found.kernel, "first": first, "changes": changes, "why": list(found.why)}


def _scattered(name: str, of: Collection) -> Iterator[str]:
    """That rows of a key are brought together by a shuffle."""
    if of.layout:
        yield f"{name} is laid out by {of.layout.by}: rows of a key are in many buckets, and meet by a shuffle"


def _windows(derived: Derived) -> tuple[str, ...]:
    if derived.definition.windows is None:
        return ()
    from tidemark.definition.windows.explained import explained_windows

    return explained_windows(derived.definition.windows)


def _touches(job: Job, derived: Derived, mode: Mode, read: Sequence[Input]) -> dict[str, Any]:
    """How many rows of the input the next run of windows reads, and how many windows it computes, at most; where that
    cannot be known from records, which windows these are."""
    if derived.definition.windows is None:
        return {}
    kind = derived.definition.windows.kind
    given = replace(read[0], previous=None) if mode is Mode.WHOLE else read[0]
    rows = changed_rows(job, given)
    most = kind.windows_per_row if mode is Mode.WHOLE else kind.most_windows
    return {"changed_rows": rows} | ({"touched": kind.changes} if most is None else {"touched_windows": rows * most})


def _input_entry(state: Arrangement | None, given: InputState) -> dict[str, Any]:
    consumed = state.consumed.of(given.name) if state and state.consumed else None
    usable = given.state.certified_trace_upper if given.state else 0
    return {
        "input": given.name,
        "consumed": consumed.upper if consumed else None,
        "consumed_text": format_instant(consumed.upper) if consumed else None,
        "usable": usable,
        "usable_text": format_instant(usable) if usable else None,
    }


def _next(job: Job, state: Arrangement, inputs: tuple[InputState, ...], recipe: Recipe | None) -> dict[str, Any]:
    """What the next run begins with."""
    request = planned(state, inputs)
    match request:
        case None:
            return {"does": "nothing", "why": "its inputs have nothing new"}
        case Waits():
            return {"does": "waits", "waits_for": request.laggard, "why": request.reason}
        case CorrectRequest():
            read = inputs_of(job, request, inputs)
            mode, why = mode_of(state.collection.derived, recipe, read)
            mode, why = (Mode.WHOLE, request.whole) if request.whole else (mode, why)
            to = format_instant(request.upper)
            report = {"does": "corrects", "mode": str(mode), "why": why, "upper": request.upper, "upper_text": to}
            lost, frontiers = history_lost(state, inputs) if request.previous is None else (0, 0)
            report |= {"history_lost": lost, "history": frontiers} if frontiers else {}
            calculation = computation(state, job.store.url, recipe, mode, read, upper=request.upper)
            return report | _reads(job, calculation) | _touches(job, state.collection.derived, mode, read)


def _reads(job: Job, calculation: Computation) -> dict[str, int]:
    """How many rows the run reads, where that is known before. A part that cannot be read is noted: the run says it."""
    if calculation.mode is not Mode.BY_KEY:
        return {}
    from tidemark.spark.derive.refresh_size import rows_of_refresh

    changes = any(has_changes(job, source) for source in calculation.inputs)
    try:
        rows = rows_of_refresh(calculation) if changes else 0
    except TidemarkError as error:
        job.note(f"how many rows the next run reads is not known: {error}")
        return {}
    return {} if rows is None else {"rows_read": rows}


def _queries(recipe: Recipe | None) -> dict[str, Any]:
    if recipe is None:
        return {}
    if recipe.windowed:  # `whole` is no query of theirs
        return {"rows": recipe.windowed.rows, "valued": recipe.windowed.valued}
    found: dict[str, Any] = {}
    if rows := recipe.in_windows:
        found = {"rows": rows.rows} | ({"valued": rows.valued} if rows.valued else {})
    found["whole"] = recipe.whole
    if recipe.by_row:
        found["by_row"] = recipe.by_row.select
    if recipe.by_key:
        found["by_key"] = {name: value for name, value in asdict(recipe.by_key).items() if value}
    return found

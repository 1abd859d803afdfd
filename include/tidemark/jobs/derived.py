"""What is asked of a derived collection's inputs and definition before anything is computed. No rows are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from tidemark.config.schedule import Schedule, interval_ends
from tidemark.definition.computation import Computation, Input, shape_of
from tidemark.definition.recipe import Recipe
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Column, Landed
from tidemark.model.derived import Consumption, Definition, Derived, Mode, Refresh
from tidemark.model.evolution import evolved, following, holds
from tidemark.model.transition.declarations import redeclared
from tidemark.model.window.judged import judged_from
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Late
from tidemark.plan.arrivals import check_arrivals
from tidemark.plan.computed_as import identity_of
from tidemark.plan.correct import CorrectRequest, InputState, Waits, plan_correct
from tidemark.plan.event_times import check_event_times
from tidemark.plan.read import at_rest, plan_as_of, plan_changes
from tidemark.plan.whole_history import check_whole_history, judges_all_history
from tidemark.storage.sidecars import parts_table

if TYPE_CHECKING:
    from tidemark.config.derived_file import DerivedFile

_WORD = re.compile(r"\w+")
STOPS = 64
"""Boundaries of a schedule that are looked ahead to: a run plans again after each commit."""


class NotComparable(InvalidUsage):
    """The rows as of a recorded frontier cannot be compared with their definition: what that needs is merged by now."""


@dataclass(frozen=True)
class Shape:
    """What a definition says over its inputs.

    Attributes:
        columns: Its columns, in order.
        key: The key that it shows (None: it must be declared).
        hidden: Columns of ours that come with it.
        recipe: How it is computed (None: by a function in Python).
        input_columns: What it was found over (`Collection.input_columns`).
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    hidden: tuple[Column, ...]
    recipe: Recipe | None
    input_columns: str


def opened(job: Job, derived: Derived) -> tuple[InputState, ...]:
    """The inputs as they are now, in the order they are named in."""
    return tuple(_opened(job, name) for name in derived.inputs)


def _opened(job: Job, name: str) -> InputState:
    head = job.neighbour(name).log.load()
    return InputState(name, head.arrangement, head.version)


def recipe_of(derived: Derived, inputs: Sequence[InputState]) -> Recipe | None:
    """How a definition is computed, by its text and its inputs' columns; None if it is a function in Python.

    Raises InvalidUsage, in one line, for a definition that is refused, or that its inputs' columns do not fit any more,
    for an input that was never created, and for one that does not keep what it sees of it: event times, or when all
    rows came."""
    shapes = [shape_of(source.name, _created(source).collection) for source in inputs]
    for source in inputs:
        check_event_times(derived, _created(source))
        check_arrivals(derived, _created(source))
        check_whole_history(derived, _created(source))
    if derived.definition.function:
        return None
    if derived.definition.windows is not None:
        from tidemark.definition.windows.analysed import analysed_windows

        return analysed_windows(derived.definition.windows, shapes[0], derived.refresh)
    from tidemark.definition.analysed import analysed

    return analysed(derived.definition.select, shapes, derived.refresh, derived.validity)


def recipe_of_file(file: DerivedFile, inputs: Sequence[InputState]) -> Recipe | None:
    """As `recipe_of`, of a definition as its file declares it. Raises InvalidUsage at the file's line, also for columns
    it names that the definition has not; those of a definition in Python are known to Spark alone."""
    try:
        recipe = recipe_of(file.origin, inputs)
    except InvalidUsage as error:
        raise file.refusal_of_definition(str(error)) from None
    if recipe is not None:
        file.check_names(recipe.columns)
    return recipe


def shaped(job: Job, name: str, derived: Derived, inputs: Sequence[InputState] | None = None) -> Shape:
    """What a definition says over its inputs (None: as they are), by Spark's analysis of it. Raises InvalidUsage as
    `recipe_of` and `Computer.shape`."""
    inputs = opened(job, derived) if inputs is None else inputs
    recipe = recipe_of(derived, inputs)
    read = input_columns(recipe, inputs)
    sources = [
        Input(source.name, job.neighbour(source.name).store.url, _created(source), _created(source).seal)
        for source in inputs
    ]
    columns = job.computer.shape(name, derived.definition, recipe, sources)
    if recipe is None:
        return Shape(columns, None, (), None, read)
    hidden = {column.name for column in recipe.hidden}
    visible = tuple(column for column in columns if column.name not in hidden)
    return Shape(visible, recipe.key, recipe.hidden, recipe, read)


def input_columns(recipe: Recipe | None, inputs: Sequence[InputState]) -> str:
    """The identity of the columns that a definition reads of its inputs, as these have them."""
    return identity_of(columns_read(recipe, source.name, _created(source).collection) for source in inputs)


def columns_read(recipe: Recipe | None, name: str, collection: Collection) -> tuple[Column, ...]:
    """The columns of an input that a definition looks at, and maybe others."""
    if recipe is None:
        return collection.columns
    names = {*(recipe.used or {}).get(name, ())}
    if recipe.windowed is not None:
        names = {*_WORD.findall(f"{recipe.windowed.rows} {recipe.windowed.valued}")}
    return tuple(column for column in collection.columns if column.name in names)


def reads_others(collection: Collection, recipe: Recipe | None, inputs: Sequence[InputState]) -> bool:
    """Whether its inputs' columns are others than those over which a collection's columns were found."""
    if not collection.input_columns:  # found by a release that did not record it, or before any changed
        return any(_created(source).collection.schema for source in inputs)
    return collection.input_columns != input_columns(recipe, inputs)


def as_computed(collection: Collection, recipe: Recipe | None, inputs: Sequence[InputState]) -> Collection:
    """The collection as its next run computes it, as far as that is known without Spark; itself if nothing changed.

    Its inputs' columns may have changed since it was declared, and with that what is kept behind its sums.
    """
    read = collection.input_columns
    if reads_others(collection, recipe, inputs):
        read = input_columns(recipe, inputs)
    hidden = recipe.hidden if recipe else ()
    return evolved(collection, replace(collection, hidden=hidden, input_columns=read))


def followed(job: Job, state: Arrangement, recipe: Recipe | None, inputs: Sequence[InputState]) -> Collection:
    """As `as_computed`, with the columns that the definition gives over its inputs today.

    Raises:
        InvalidUsage: Its rows cannot follow them, with both types and what to write in its file.
    """
    collection = state.collection
    if not reads_others(collection, recipe, inputs):
        return as_computed(collection, recipe, inputs)
    return over(state, shaped(job, collection.name, collection.derived, inputs))


def over(state: Arrangement, shape: Shape) -> Collection:
    """The collection of a state with the columns that its definition was found to give.

    Raises:
        InvalidUsage: Its rows cannot follow them, with both types and what to write in its file.
    """
    collection = state.collection
    columns = {column.name: column for column in following(collection.columns, shape.columns)}
    names = [column.name for column in collection.key]
    if gone := [name for name in names if name not in columns]:
        raise InvalidUsage(f"the definition of {collection.name} gives no {gone[0]}, which is in its key")
    key = tuple(replace(column, type=columns.pop(column.name).type) for column in collection.key)
    value = tuple(replace(column, id=0) for column in columns.values())
    proposed = replace(
        collection, key=key, value=value, hidden=shape.hidden, dropped=(), input_columns=shape.input_columns
    )
    return redeclared(state, proposed)


def declared_over(file: DerivedFile, shape: Shape, state: Arrangement | None) -> Collection:
    """The collection that a file declares, whose definition was found to have a shape.

    Args:
        state: What is to follow: its columns stay as they are where they hold the values of the definition.

    Raises:
        InvalidUsage: At the file's line, for a type under `columns` that does not hold what the definition gives.
    """
    types = {column.name: column.type for column in shape.columns}
    for name, declared in file.declaration.types.items():
        if name in types and not holds(types[name], declared):
            raise file.refusal(
                ("columns", name),
                f"column {name} is {declared}, and the definition gives {types[name]}; write {name}: {types[name]}",
            )
    current = () if state is None or state.has_no_data else state.collection.columns
    made = file.collection(following(current, shape.columns), shape.key, shape.hidden)
    return replace(made, input_columns=shape.input_columns)


def mode_of(derived: Derived, recipe: Recipe | None, inputs: Sequence[Input]) -> tuple[Mode, str]:
    """The mode in which what changed is computed, and why it is not a cheaper one."""
    if derived.refresh is Refresh.WHOLE:
        return Mode.WHOLE, "refresh: whole"
    if recipe is not None:
        return recipe.mode, "; ".join(recipe.why) if recipe.mode is Mode.WHOLE else ""
    by = derived.definition.by
    if not by:
        return Mode.WHOLE, "a python definition without by"
    for source in inputs:
        names = {column.name for column in source.state.collection.columns}
        if lacking := [name for name in by if name not in names]:
            return Mode.WHOLE, f"{source.name} has no column {lacking[0]}, which it is computed by"
    return Mode.BY_KEY, ""


def inputs_of(job: Job, request: CorrectRequest, inputs: Sequence[InputState]) -> tuple[Input, ...]:
    """The inputs as a request reads them."""
    states = {source.name: _created(source) for source in inputs}
    return tuple(
        Input(
            span.name,
            job.neighbour(span.name).store.url,
            states[span.name],
            span.upto + 1,
            None if span.after is None else span.after + 1,
            span.consumed,
        )
        for span in request.inputs
    )


def consumed_inputs(job: Job, consumption: Consumption, inputs: Sequence[InputState]) -> tuple[Input, ...]:
    """The inputs as a consumption has them. NotComparable, naming it, if one does not keep that time any more."""
    sources = []
    for source in inputs:
        entry, state = consumption.of(source.name), _created(source)
        if entry is None or entry.incarnation != state.incarnation or not state.function.keeps(entry.upper - 1):
            raise NotComparable(
                f"{source.name} does not keep what was consumed of it; run correct, which recomputes everything"
            )
        sources.append(
            Input(source.name, job.neighbour(source.name).store.url, state, entry.upper, consumed=entry.upper)
        )
    return tuple(sources)


def judged(job: Job, calculation: Computation) -> Computation:
    """A computation whose inputs know the ends of their intervals, by which rows are late for windows: those of the
    landed collections an input rests on, where several, of all of them. Where no row is late for ever it is left as it
    is.

    Raises InvalidUsage where one of these is not there any more."""
    windows = calculation.definition.windows
    if windows is None or windows.counts_late_for is None:
        return calculation
    return replace(
        calculation, inputs=tuple(_with_ends(job, calculation.definition, source) for source in calculation.inputs)
    )


def readable_from(job: Job, derived: Derived, state: Arrangement, consumed: int) -> int:
    """From when on an input is to be readable that was consumed to a time: just below that. Where sliding windows take
    late rows for a while only, just below the end of the interval up to which it was complete then: rows that came
    before that are distinguished from those that came since, though all were consumed (model/window/judged.py)."""
    windows = derived.definition.windows
    if windows is None or windows.counts_late_for is None or not isinstance(windows.kind, Sliding):
        return consumed - 1
    schedules = [Schedule.of(_landed(job, name).landed) for name in _roots(state)]
    return min(consumed, *(schedule.latest(consumed) for schedule in schedules)) - 1


def _with_ends(job: Job, definition: Definition, source: Input) -> Input:
    windows = definition.windows
    assert windows is not None  # only of these rows are judged
    roots = [_landed(job, name) for name in _roots(source.state)]
    schedules, start = [Schedule.of(root.landed) for root in roots], min(root.start for root in roots)
    first = max((schedule.following(root.start) for schedule, root in zip(schedules, roots, strict=True)), default=0)
    if judges_all_history(definition):
        return replace(source, ends=_judging_ends(schedules, first, start, source.upper), all_judged=True)
    before = source.state.since if source.consumed is None else min(source.state.since, source.consumed)
    lower = max(before if source.previous is None else source.previous, start)
    if source.previous is not None and windows.late is Late.NEXT_WINDOW:
        (complete,) = interval_ends(schedules, lower, lower + 1)
        begins = judged_from(windows, complete)
        source, lower = replace(source, judged_from=begins), max(start, begins)
    return replace(source, ends=_judging_ends(schedules, first, lower, source.upper))


def _judging_ends(schedules: Sequence[Schedule], first: int, lower: int, upper: int) -> tuple[int, ...]:
    """The ends of intervals by which rows are judged late. Nothing is complete before the `first` interval is, so what
    it brings came before all judging, also of windows that ended before the collection's start."""
    return tuple(end for end in interval_ends(schedules, lower, upper) if end >= first)


def _roots(state: Arrangement) -> Sequence[str]:
    if not state.collection.is_derived:
        return [state.collection.name]
    return [root.collection for root in state.consumed.roots] if state.consumed else []


def _landed(job: Job, name: str) -> Collection:
    state = job.neighbour(name).log.load().arrangement
    if state is None:
        raise InvalidUsage(f"{name}, by whose schedule rows are late for windows, is not there any more")
    return state.collection


def has_changes(job: Job, source: Input) -> bool:
    """Whether anything was learned of an input since it was consumed, by the records of its parts alone."""
    if source.previous is None:
        return True
    if source.previous == source.upper:
        return False
    request = plan_changes(source.state, source.previous - 1, source.upper - 1)
    request, parts = parts_table.opened_read(job.neighbour(source.name).store, request)
    return not request.unsealed.is_empty or any(resting.parts for resting in at_rest(request, parts))


def changed_rows(job: Job, source: Input) -> int:
    """How many rows at rest hold what was learned of an input since it was consumed (of one that was not, all), by the
    records of its parts alone."""
    store, upto = job.neighbour(source.name).store, source.upper - 1
    planned = (
        plan_as_of(source.state, upto)
        if source.previous is None
        else plan_changes(source.state, source.previous - 1, upto)
    )
    return sum(part.rows for resting in at_rest(*parts_table.opened_read(store, planned)) for part in resting.parts)


def computation(
    state: Arrangement, url: str, recipe: Recipe | None, mode: Mode, inputs: Sequence[Input], *, upper: int
) -> Computation:
    """What is to be computed of a state, but for where it is written. What is computed whole is computed of all that
    the inputs hold, whatever of it was consumed before."""
    derived = state.collection.derived
    read = tuple(replace(source, previous=None) if mode is Mode.WHOLE else source for source in inputs)
    before = state.recorded_below
    return Computation(url, state, derived.definition, recipe, mode, read, before, upper, "", derived.validity)


def planned(state: Arrangement, inputs: Sequence[InputState], **options: Any) -> CorrectRequest | Waits | None:
    """What a run of `correct` does next, with the `options` of `plan_correct`: it knows where catching up stops."""
    return plan_correct(state, inputs, stops=_stops(state, inputs), **options)


def _stops(state: Arrangement, inputs: Sequence[InputState]) -> tuple[int, ...]:
    """Where catching up stops, so that collections over the same inputs meet: where inputs that are derived have been
    complete; if none is, where daily runs would have stopped: at the ends of the intervals of the coarsest schedule,
    less the grace (the longest, of inputs with that schedule)."""
    states = [source.state for source in inputs if source.state is not None]
    if len(states) < len(inputs):
        return ()
    derived = {consumption.complete_below for arrangement in states for consumption in arrangement.consumptions}
    if derived:
        return tuple(sorted(derived))
    below = state.complete_below or max(arrangement.collection.start for arrangement in states)
    landed = [
        arrangement.collection.origin for arrangement in states if isinstance(arrangement.collection.origin, Landed)
    ]
    upto = max(arrangement.complete_below for arrangement in states)  # one that has ended is waited for by nobody
    if not landed:
        return ()
    schedules = sorted({Schedule.of(origin) for origin in landed}, key=str)
    coarsest = max(schedules, key=lambda schedule: _width(schedule, below))
    grace = max(origin.grace for origin in landed if Schedule.of(origin) == coarsest)
    ahead = (end - grace for end in islice(_boundaries(coarsest, below + grace), STOPS))
    return tuple(takewhile(lambda time: time < upto, ahead))  # a boundary takes a millisecond to find


def _width(schedule: Schedule, after: int) -> int:
    """How long the first whole interval is that begins after `after`."""
    lower, upper = islice(_boundaries(schedule, after), 2)
    return upper - lower


def _boundaries(schedule: Schedule, after: int) -> Iterator[int]:
    time = after
    while True:
        time = schedule.following(time)
        yield time


def _created(source: InputState) -> Arrangement:
    if source.state is None:
        raise InvalidUsage(
            f"input {source.name} was never created, or was dropped; `tidemark init` creates it from its file"
        )
    return source.state


def as_written(calculation: Computation, batch: str, previous: int) -> Computation:
    """The computation that writes a batch."""
    return replace(calculation, prefix=f"data/{batch}", previous=previous)

"""What statistics of windows are computed from: the input, as it was consumed for the windows that are asked for."""

from __future__ import annotations

from tidemark.definition.computation import Computation
from tidemark.definition.windows.statistics import Statistics, statistics_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.derived import NotComparable, computation, consumed_inputs, judged, opened, recipe_of
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection
from tidemark.model.derived import Consumption, Mode
from tidemark.model.instant import format_instant
from tidemark.plan.computed_as import differs


def consumption_of(state: Arrangement, given: Collection, upto: int, *, open_too: bool) -> Consumption:
    """The consumption by which the windows of a state, over an input `given`, are what they are as known at `upto`: the
    newest that was recorded by then, as what is there between two frontiers follows from the earlier one.

    Raises InvalidUsage where it is not recorded any more, where another definition was in force, and where `open_too`
    asks for windows that a later one has computed, too.
    """
    name, recorded = state.collection.name, state.consumptions
    found = next((one for one in reversed(recorded) if one.upper <= upto + 1), None)
    if found is None:
        kept = f"the oldest still recorded is {format_instant(recorded[0].upper - 1)}" if recorded else "none is"
        raise InvalidUsage(f"of what {name} consumed by {format_instant(upto)} nothing is recorded; {kept}")
    if differs(found.definition, state.collection, [given]):
        raise InvalidUsage(
            f"windows of {name} as known at {format_instant(upto)} were computed by another definition; statistics "
            f"need the current one: run `tidemark correct {name}`, or ask for a later time"
        )
    if open_too and recorded[-1] is not found:
        raise InvalidUsage(
            f"{name} was corrected to {format_instant(recorded[-1].upper)} and is sealed to {format_instant(upto + 1)} "
            f"only, so its open windows mix both: run `tidemark seal {name}`, or leave open out"
        )
    return found


def statistics(job: Job, state: Arrangement, upto: int, *, open_too: bool) -> tuple[Computation, Statistics]:
    """What is computed for the statistics of the windows of a state as known at `upto`, and how.

    Raises InvalidUsage as `consumption_of`, and where the input is gone or does not keep what was consumed of it any
    more.
    """
    derived = state.collection.derived
    inputs = opened(job, derived)
    if inputs[0].state is None:
        raise InvalidUsage(f"statistics are read from {inputs[0].name}, which is not there any more")
    consumption = consumption_of(state, inputs[0].state.collection, upto, open_too=open_too)
    recipe = recipe_of(derived, inputs)
    try:
        read = consumed_inputs(job, consumption, inputs)
    except NotComparable:
        consumed, given = consumption.inputs[0], inputs[0].state
        why = "it was created again since"
        if consumed.incarnation == given.incarnation:
            why = f"its history is merged below {format_instant(given.since)}"
        raise InvalidUsage(
            f"statistics are read from {consumed.input} as known at {format_instant(consumed.upper - 1)}, and {why}"
        ) from None
    asked = computation(state, job.store.url, recipe, Mode.WHOLE, read, upper=consumption.upper)
    assert derived.definition.windows is not None  # who asks knows that
    return judged(job, asked), statistics_of(derived.definition.windows, read[0].shape)

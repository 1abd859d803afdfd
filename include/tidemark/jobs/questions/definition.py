"""Whether a derived collection holds what its definition says of its inputs, as it consumed them: computed anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.definition.computation import Differing
from tidemark.definition.recipe import Recipe
from tidemark.errors import InvalidUsage
from tidemark.jobs.derived import Untold, as_computed, computation, consumed_inputs, judged, opened, recipe_of
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.derived import Consumption, Mode
from tidemark.model.instant import format_instant
from tidemark.model.key import Key
from tidemark.plan.computed_as import computed_as
from tidemark.plan.consume import InputState

MOST = 20
"""Rows that are told of a frontier at which they differ."""


@dataclass(frozen=True)
class Frontier:
    """What was found at one recorded frontier: the first rows that differ; or why it cannot be told any more."""

    upper: int
    complete_below: int
    consumed: dict[str, int]
    differing: tuple[Differing, ...] = ()
    untold: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "upper_text": format_instant(self.upper), "sound": self.sound}

    @property
    def sound(self) -> bool:
        return not self.differing


@dataclass(frozen=True)
class DefinitionReport:
    """What was found at the recorded frontiers that were looked at, the newest first."""

    collection: str
    version: int
    frontiers: tuple[Frontier, ...]

    @property
    def sound(self) -> bool:
        """Whether no row differed at a frontier of which that could be told."""
        return all(one.sound for one in self.frontiers)

    @property
    def checked(self) -> int:
        """Frontiers at which all was computed anew."""
        return sum(not one.untold for one in self.frontiers)

    def as_dict(self) -> dict[str, Any]:
        return {
            "collection": self.collection,
            "version": self.version,
            "sound": self.sound,
            "checked": self.checked,
            "frontiers": [one.as_dict() for one in self.frontiers],
        }


def verify_definition(job: Job, *, every: bool = False, most: int = MOST) -> DefinitionReport:
    """Compute all of a derived collection anew as of its newest recorded frontier, or of `every` one that its inputs
    still keep, and compare.

    What differs is in the report. Raises InvalidUsage if the collection is not derived or was never corrected, and for
    a definition that is refused or raises.
    """
    head = job.log.load()
    state = head.state
    derived = state.collection.derived
    if state.consumed is None:
        raise InvalidUsage(
            f"{state.collection.name} was never corrected: run `tidemark correct {state.collection.name}`"
        )
    newest_first = tuple(reversed(state.consumptions))
    inputs = opened(job, derived)
    recipe = recipe_of(derived, inputs)
    found = []
    for consumption in newest_first if every else newest_first[:1]:
        told = {held.input: held.upper for held in consumption.inputs}
        frontier = Frontier(consumption.upper, consumption.complete_below, told)
        if untold := _untold(state, consumption, recipe, inputs):
            found.append(Frontier(**{**vars(frontier), "untold": untold}))
            continue
        try:
            read = consumed_inputs(job, consumption, inputs)
        except Untold as error:
            found.append(Frontier(**{**vars(frontier), "untold": str(error)}))
            continue
        asked = computation(state, job.store.url, recipe, Mode.WHOLE, read, upper=consumption.upper)
        job.note(f"recomputing {state.collection.name} as of {format_instant(consumption.upper)}")
        rows = job.computer.compare(judged(job, asked), keys=None, most=most)
        found.append(Frontier(**{**vars(frontier), "differing": rows}))
    return DefinitionReport(state.collection.name, head.version, tuple(found))


def differing_keys(job: Job, state: Arrangement, keys: Sequence[Key], most: int) -> tuple[Differing, ...]:
    """Of some keys of a state the rows that differ at its newest recorded frontier. Raises Untold where that cannot be
    told any more, InvalidUsage for a definition that is refused or raises."""
    consumption, derived = state.consumed, state.collection.derived
    if consumption is None:
        return ()
    inputs = opened(job, derived)
    recipe = recipe_of(derived, inputs)
    if untold := _untold(state, consumption, recipe, inputs):
        raise Untold(untold)
    read = consumed_inputs(job, consumption, inputs)
    asked = computation(state, job.store.url, recipe, Mode.WHOLE, read, upper=consumption.upper)
    return job.computer.compare(judged(job, asked), keys=keys, most=most)


def _untold(state: Arrangement, consumption: Consumption, recipe: Recipe | None, inputs: Sequence[InputState]) -> str:
    """Why what was held at a frontier cannot be compared with the definition; "" if it can."""
    known = [given.state.collection for given in inputs if given.state is not None]
    if consumption.definition != computed_as(state.collection, known):
        return "another definition was in force"
    if as_computed(state.collection, recipe) != state.collection:
        return "columns of its inputs changed, and with that what is kept behind its sums"
    if not state.function.keeps(consumption.upper - 1):
        return f"the history of {state.collection.name} is merged there"
    return ""

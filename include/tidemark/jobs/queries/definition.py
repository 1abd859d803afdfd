"""Whether a derived collection holds what its definition says of its inputs, as it consumed them: recomputed. Windows
are judged by their law (judged_by_law.py), whatever the law says nothing of by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from tidemark.definition.computation import Computation, Differing
from tidemark.definition.recipe import Recipe
from tidemark.errors import InvalidUsage
from tidemark.jobs.derived import NotComparable, as_computed, computation, consumed_inputs, judged, opened, recipe_of
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.derived import Consumption, Mode
from tidemark.model.instant import format_instant
from tidemark.model.key import Key
from tidemark.plan.computed_as import differs
from tidemark.plan.consume import InputState

MOST = 20
"""Rows that are shown of a frontier at which rows differ."""


class Judge(StrEnum):
    """What the rows of a definition were recomputed by: the pure law of windows, or Spark."""

    LAW = "law"
    SPARK = "spark"


@dataclass(frozen=True)
class Comparison:
    """The first rows that differ, and by what that was judged; of how many keys, where keys were asked for. Of windows
    that the law judged, how many these were (None: all rows were compared), and, for people, what was not looked at
    ("": nothing)."""

    differing: tuple[Differing, ...]
    judged_by: Judge
    keys: int = 0
    windows: int | None = None
    left: str = ""


@dataclass(frozen=True)
class Frontier:
    """What was found at one recorded frontier: the first rows that differ, and as of Comparison what was judged; or why
    that is not known any more."""

    upper: int
    complete_below: int
    consumed: dict[str, int]
    differing: tuple[Differing, ...] = ()
    not_compared: str = ""
    judged_by: Judge | None = None
    windows: int | None = None
    left: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "upper_text": format_instant(self.upper), "sound": self.sound}

    @property
    def sound(self) -> bool:
        """Whether no row differs of what was looked at."""
        return not self.differing


@dataclass(frozen=True)
class DefinitionReport:
    """What was found at the recorded frontiers that were looked at, the newest first."""

    collection: str
    version: int
    frontiers: tuple[Frontier, ...]

    @property
    def sound(self) -> bool:
        """Whether no row differed at a frontier that could be compared."""
        return all(one.sound for one in self.frontiers)

    @property
    def checked(self) -> int:
        """Frontiers at which rows were recomputed."""
        return sum(not one.not_compared for one in self.frontiers)

    @property
    def whole(self) -> bool:
        """Whether at these frontiers all rows were looked at."""
        return not any(one.left for one in self.frontiers)

    def as_dict(self) -> dict[str, Any]:
        return {
            "collection": self.collection,
            "version": self.version,
            "sound": self.sound,
            "checked": self.checked,
            "whole": self.whole,
            "frontiers": [one.as_dict() for one in self.frontiers],
        }


def verify_definition(job: Job, *, every: bool = False, most: int = MOST) -> DefinitionReport:
    """Recompute a derived collection as of its newest recorded frontier, or of `every` one that its inputs still keep,
    and compare. Of windows over more rows than the law can be asked of, some are recomputed, and the report says so.

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
        consumed = {input_.input: input_.upper for input_ in consumption.inputs}
        frontier = Frontier(consumption.upper, consumption.complete_below, consumed)
        if reason := _why_not_comparable(state, consumption, recipe, inputs):
            found.append(replace(frontier, not_compared=reason))
            continue
        try:
            read = consumed_inputs(job, consumption, inputs)
        except NotComparable as error:
            found.append(replace(frontier, not_compared=str(error)))
            continue
        asked = computation(state, job.store.url, recipe, Mode.WHOLE, read, upper=consumption.upper)
        job.note(f"recomputing {state.collection.name} as of {format_instant(consumption.upper)}")
        comparison = _compared(job, asked, None, most)
        found.append(
            replace(
                frontier,
                differing=comparison.differing,
                judged_by=comparison.judged_by,
                windows=comparison.windows,
                left=comparison.left,
            )
        )
    return DefinitionReport(state.collection.name, head.version, tuple(found))


def compared_keys(job: Job, state: Arrangement, keys: Sequence[Key], most: int) -> Comparison:
    """Of some keys of a state the rows that differ at its newest recorded frontier. Raises NotComparable where that is
    not known any more, InvalidUsage for a definition that is refused or raises."""
    consumption, derived = state.consumed, state.collection.derived
    if consumption is None:
        return Comparison((), Judge.LAW)
    inputs = opened(job, derived)
    recipe = recipe_of(derived, inputs)
    if reason := _why_not_comparable(state, consumption, recipe, inputs):
        raise NotComparable(reason)
    read = consumed_inputs(job, consumption, inputs)
    asked = computation(state, job.store.url, recipe, Mode.WHOLE, read, upper=consumption.upper)
    return _compared(job, asked, keys, most)


def _compared(job: Job, asked: Computation, keys: Sequence[Key] | None, most: int) -> Comparison:
    """Windows by their law; what it says nothing of by Spark."""
    asked = judged(job, asked)
    if asked.definition.windows is not None:
        from tidemark.jobs.queries.judged_by_law import judge
        from tidemark.jobs.queries.law_values import BeyondTheLaw

        try:
            found = judge(job, asked, keys, most)
            return Comparison(found.differing, Judge.LAW, found.keys, found.windows, found.left)
        except BeyondTheLaw as why:
            job.note(f"{asked.name} is recomputed by Spark, not by the law of windows: {why}")
    rows = job.computer.compare(asked, keys=keys, most=most)
    return Comparison(rows, Judge.SPARK, 0 if keys is None else len(keys))


def _why_not_comparable(
    state: Arrangement, consumption: Consumption, recipe: Recipe | None, inputs: Sequence[InputState]
) -> str:
    """Why the rows as of a frontier cannot be compared with the definition; "" if it can."""
    known = [given.state.collection for given in inputs if given.state is not None]
    if differs(consumption.definition, state.collection, known):
        return "another definition was in force"
    if as_computed(state.collection, recipe, inputs) != state.collection:
        return "columns of its inputs changed since"
    if not state.function.keeps(consumption.upper - 1):
        return f"the history of {state.collection.name} is merged there"
    return ""

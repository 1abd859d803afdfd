"""How a definition is computed, in words: by what, where, and why in no cheaper place.

    kernel       rows are read by Python as Arrow and computed by NumPy: groups, sliding windows, sessions, joins
    Spark SQL    a query that Spark plans: joins of large inputs, window functions, and what no kernel computes; of
                 sliding windows and sessions the values of single rows, where Arrow cannot, for the kernel

    place        what goes where                                         costs
    here         this process reads the rows                             no job of Spark's
    key ranges   each executor reads a range of keys and writes it       no shuffle
    shuffle      executors read, and bring groups or rows together       one shuffle
    queries      what Spark plans                                        what it plans
    python       a function of the owner's, which executors call         what it does

Which engine follows from the definition alone. Which place follows from how many rows there are, and from what the
input is in order of: the cheapest that takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from tidemark.definition.recipe import InputShape, Recipe, SlidingPlan
from tidemark.model.derived import Mode


class Place(StrEnum):
    """Where a definition is computed."""

    HERE = "here"
    KEY_RANGES = "key_ranges"
    SHUFFLE = "shuffle"
    QUERIES = "queries"
    PYTHON = "python"


PLACES = {
    Place.HERE: "in this process",
    Place.KEY_RANGES: "by executors, each a range of keys",
    Place.SHUFFLE: "by executors, after a shuffle",
    Place.QUERIES: "by Spark SQL",
    Place.PYTHON: "by its function in Python, on executors",
}


DATA_DRIVEN = ("sliding", "session")
"""Kernels of windows that have no aggregates in SQL: they compute them wherever the values come from."""


@dataclass(frozen=True)
class Way:
    """How something was computed: where, by which `kernel` (empty: by none), and why in no cheaper place."""

    place: Place
    kernel: str
    why: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """In a sentence's words: `by the session kernel, in this process`."""
        if self.place is Place.QUERIES and self.kernel in DATA_DRIVEN:
            return f"{PLACES[self.place]} and the {self.kernel} kernel"
        if self.place in (Place.QUERIES, Place.PYTHON):
            return PLACES[self.place]
        return f"by the {self.kernel} kernel, {PLACES[self.place]}"


@dataclass(frozen=True)
class Ways:
    """How a definition can be computed: by which kernel (empty: by Spark SQL alone), where the first time and where
    later changes are, the cheapest place first, and why in no cheaper ones."""

    kernel: str
    first: tuple[Place, ...]
    changes: tuple[Place, ...]
    why: tuple[str, ...]


JOINED = (Place.HERE, Place.KEY_RANGES, Place.QUERIES)
"""Where a join is computed the first time."""
_JOINED = (
    "all inputs but one are kept in memory; by executors where the key begins as that of the one does, "
    "and by Spark SQL where they are too large"
)
_VALUES = "Spark SQL gives the rows that the kernel takes: {}"


def kernel_of(recipe: Recipe | None) -> str:
    """The kernel that computes a definition; empty where Spark SQL does."""
    if recipe is None:
        return ""
    if recipe.windowed is not None:
        return "sliding" if isinstance(recipe.windowed, SlidingPlan) else "session"
    rule = recipe.by_key
    if recipe.join is not None:
        return "join"
    of_values = recipe.in_windows is not None and recipe.in_windows.grouped is not None
    at_hand = rule is not None and (rule.grouped is not None or rule.delta_plan is not None)
    return "group" if at_hand or of_values else ""


def ways_of(recipe: Recipe, shapes: Sequence[InputShape]) -> Ways:
    """The ways in which a definition over inputs of these shapes is computed."""
    kernel = kernel_of(recipe)
    if not kernel:
        left = "each changed row is computed by itself" if recipe.mode is Mode.BY_ROW else recipe.left_to_spark
        joined = "up to a quarter of the rows changed: these are joined with the other inputs" if recipe.joined else ""
        return Ways("", (Place.QUERIES,), (Place.QUERIES,), tuple(filter(None, (left, joined))))
    if recipe.join is not None:
        near = [Place.HERE] if recipe.mode is Mode.BY_KEY else []
        return Ways(kernel, JOINED, (*near, *JOINED[1:]), (_JOINED,))
    (shape,), rule = shapes, recipe.by_key
    by = _by(recipe)
    ranges = [Place.KEY_RANGES] if by and _leading(shape, by) else []
    shuffle = [Place.SHUFFLE] if not shape.laid_out_by and (by or kernel != "session") else []
    why = [] if ranges else [_in_another_order(shape, by)]
    if recipe.windowed is not None and recipe.windowed.of_columns is None:
        first = [*([] if recipe.windowed.is_bounded else shuffle), Place.QUERIES]
        return Ways(kernel, tuple(first), (Place.QUERIES,), (_VALUES.format(recipe.left_to_spark),))
    if recipe.in_windows is not None and recipe.placed is None:
        said = f"{_VALUES.format(recipe.left_to_spark)}; what changed it groups itself"
        return Ways(kernel, (Place.SHUFFLE, Place.QUERIES), (Place.QUERIES,), (said,))
    if recipe.placed is not None and recipe.placed.frozen_after is not None:
        said = "late rows count for a limited time: what many changes reach is computed of all updates, by Spark SQL"
        changes = [Place.QUERIES] if recipe.mode is Mode.WHOLE else [Place.HERE, Place.QUERIES]
        return Ways(kernel, (Place.HERE, *shuffle, Place.QUERIES), tuple(changes), (said,))
    first = [Place.HERE, *ranges, *shuffle, Place.QUERIES]
    changes = [Place.HERE, *(ranges if rule is None or rule.delta is None else []), Place.QUERIES]
    if rule is not None and rule.grouped is None:
        first = [Place.QUERIES]
        why.append(f"the first time by Spark SQL: {recipe.left_to_spark}")
    if recipe.mode is Mode.WHOLE:
        changes = [*ranges, Place.QUERIES]
    return Ways(kernel, tuple(first), tuple(changes), tuple(why))


def _by(recipe: Recipe) -> Sequence[str]:
    """The columns of the input in which rows of one window are equal; of other groups none is looked for."""
    if recipe.windowed is not None:
        return recipe.windowed.by
    return recipe.in_windows.assignment.by if recipe.in_windows is not None else ()


def _leading(shape: InputShape, by: Sequence[str]) -> list[str]:
    """The columns of the input's key that lead both it and `by`: by ranges of these executors read what belongs
    together, in its order."""
    if shape.laid_out_by:
        return []
    return [name for name, _ in takewhile(lambda both: both[0] == both[1], zip(shape.key, by, strict=False))]


def _in_another_order(shape: InputShape, by: Sequence[str]) -> str:
    if shape.laid_out_by:
        return f"{shape.name} is laid out by {shape.laid_out_by}, so the rows of a key are in many places"
    key = f"{shape.name} is in order of {', '.join(shape.key)}"
    return f"{key}, not of {', '.join(by)}" if by else f"{key}, and not of what is grouped"

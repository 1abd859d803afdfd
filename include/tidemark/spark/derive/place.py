"""Where a derived collection is computed. Places are asked from the cheapest on, and the first that takes it writes it:

    here         this process reads all rows of an input for a first build, if that is small work (0072)
    near         this process finds what few changes reach, up to 1,048,576 rows; it computes that itself, or lets
                 executors read the rows there
    key ranges   executors read ranges of the input's key, where that begins with what distinguishes groups or windows
    shuffle      executors bring rows together once, or the groups of what each reads, for a collection that is empty
    queries      Spark SQL and what is behind it: whatever has no kernel, or fits nowhere else

A place knows no kind: it asks one for a function over rows (kind.py). It refuses by size, and says so
(`Views.declines`); what a kernel cannot compute exactly is left to the next place, too.

An example: 2,000,000 flights, of which 20,000 changed, in sessions by carrier. `here` takes no refresh. `near` finds
900 sessions near the changes, with 1,000,000 flights: more than this process keeps, so executors read these."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from tidemark.definition.computation import Written
from tidemark.definition.ways import Place
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Mode
from tidemark.spark.derive.executors.key_ranges import written_by_ranges
from tidemark.spark.derive.footers import holds_nothing
from tidemark.spark.derive.here.rows import all_here
from tidemark.spark.derive.kind import Kind
from tidemark.spark.derive.kinds.groups import Groups
from tidemark.spark.derive.kinds.joins import Joins
from tidemark.spark.derive.kinds.sessions import Sessions
from tidemark.spark.derive.kinds.sliding import SlidingWindows
from tidemark.spark.derive.parts import written, written_here, written_in_order
from tidemark.spark.derive.queries.answers import builds_few, updates
from tidemark.spark.derive.settings import IN_ONE_TASK, with_settings
from tidemark.spark.derive.views import Views

Found = tuple[Place, list[Written]]
KINDS: tuple[type[Kind], ...] = (Groups, SlidingWindows, Sessions, Joins)
"""The kinds that have kernels."""


def computed(views: Views) -> list[Written]:
    """What was written of a computation, by the first place that takes it; `views.place` says which that is."""
    for take in PLACES:
        found = _unless_inexact(views, take)
        if found is not None:
            views.place, answers = found
            return answers
    views.place = Place.QUERIES
    return by_queries(views)


def _unless_inexact(views: Views, take: Callable[[Views, Kind], Found | None]) -> Found | None:
    """What a place gives; None where it does not take it."""
    kind = kind_of(views)
    if kind is None:
        return None
    try:
        return take(views, kind)
    except (InvalidUsage, ArithmeticError) as why:  # the next place says what it is, or computes it
        views.declines(str(why))
        return None


def kind_of(views: Views) -> Kind | None:
    """The kind that a computation belongs to; None for what has no kernel."""
    return next((kind for one in KINDS if (kind := one.of(views)) is not None), None)


def here(views: Views, kind: Kind) -> Found | None:
    """All of a collection that holds nothing, by this process."""
    computation = views.computation
    if computation.mode is not Mode.WHOLE or not holds_nothing(computation):
        return None
    gathering = kind.gathering()
    rows = None if gathering is None else all_here(views, kind.input, on=kind.on, most=gathering.most)
    if gathering is None or rows is None:
        return None
    return Place.HERE, written_here(gathering.updates(rows), computation)


def near(views: Views, kind: Kind) -> Found | None:
    """What few changes reach."""
    found = kind.refreshed() if views.computation.mode is Mode.BY_KEY else None
    return None if found is None else (found.place, written_here(found.updates, views.computation))


def key_ranges(views: Views, kind: Kind) -> Found | None:
    """By executors, each of which reads some ranges of the input's key."""
    ranged = kind.ranged()
    found = None if ranged is None else written_by_ranges(views, ranged)
    return None if found is None else (Place.KEY_RANGES, found)


def shuffle(views: Views, kind: Kind) -> Found | None:
    """By executors, of rows that are brought together once: all of a collection that holds nothing."""
    shuffled = kind.shuffled() if holds_nothing(views.computation) else None
    if shuffled is None:
        return None
    return Place.SHUFFLE, written_in_order(shuffled.rows, views.computation, shuffled.made)


PLACES: tuple[Callable[[Views, Kind], Found | None], ...] = (here, near, key_ranges, shuffle)
"""From the cheapest on."""


def by_queries(views: Views) -> list[Written]:
    """By Spark's queries."""
    found = updates(views)
    if found is None:
        return []
    if not isinstance(found, DataFrame):
        return written_here(found, views.computation)
    with with_settings(views.spark, IN_ONE_TASK if builds_few(views) else {}):
        return written(found, views.computation)

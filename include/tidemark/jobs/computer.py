"""What computes derived collections: a seam, so that plans, kills and races are tested without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tidemark.errors import InvalidUsage

if TYPE_CHECKING:
    from tidemark.definition.computation import Computation, Computed, Differing, Input
    from tidemark.definition.recipe import Recipe
    from tidemark.model.collection import Column
    from tidemark.model.derived import Definition
    from tidemark.model.key import Key


class Computer(Protocol):
    """Computes definitions. Spark's is tidemark/spark/derive/computer.py."""

    def shape(
        self, name: str, definition: Definition, recipe: Recipe | None, inputs: Sequence[Input]
    ) -> tuple[Column, ...]:
        """The columns that a definition has over inputs, of which nothing is read. InvalidUsage, in one line, for a
        definition that cannot be understood, or is not the same every time."""
        ...

    def compute(self, computation: Computation) -> Computed:
        """Write by how much D differs from its definition, as parts under the computation's prefix, by names that no
        other attempt uses; no parts where it does not.

        Raises InvalidUsage for a definition that raises, naming the row where it is known, for a negative
        multiplicity, and, with both, where its columns are not those of D any more.
        """
        ...

    def compare(self, computation: Computation, *, keys: Sequence[Key] | None, most: int) -> tuple[Differing, ...]:
        """The first `most` rows by which D as of u - 1 differs from the definition over the inputs as consumed; with
        `keys` (as metadata has them), of these keys of D only. Nothing is written."""
        ...

    def values(self, name: str, given: str, rows: Any, selects: Sequence[str]) -> Any:
        """What selects of single rows give, one after the other: the first of some rows (an Arrow table) under the name
        of an input, `given`, the next of what the one before gave, by which the definition of `name` is judged. An
        Arrow table. InvalidUsage where one raises."""
        ...


def on_spark(runner: Callable[[], Any]) -> Computer:
    """The computer on the session of a runner, which is called once something is asked of Spark: what is little may be
    computed without."""
    return _computer(runner, compares_here=False)


def here_or_on_spark(runner: Callable[[], Any]) -> Computer:
    """The same for a process that has no Spark yet: what is little is compared without one, too."""
    return _computer(runner, compares_here=True)


def _computer(runner: Callable[[], Any], *, compares_here: bool) -> Computer:
    from tidemark.spark.derive.computer import SparkComputer

    def session() -> Any:
        spark = getattr(runner(), "spark", None)
        if spark is None:
            raise InvalidUsage("a derived collection is computed by Spark, and this run has none")
        return spark

    return SparkComputer(session, compares_here=compares_here)

"""What computing a derived collection is asked for and answers: plain values, between the step that plans and whatever
computes (jobs/computer.py)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.definition.recipe import InputShape, Recipe
from tidemark.definition.ways import Way
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.model.collection import Collection
from tidemark.model.derived import Definition, Mode, Validity
from tidemark.model.window.judged import Judging, judging_of
from tidemark.model.window.lateness import NOT_LATE, Lateness

DAY = 86_400_000_000
"""By how much a frontier is taken to move on, of a collection that was not computed yet."""


@dataclass(frozen=True)
class Input:
    """An input as a computation reads it: the state of the collection at `url`, as known at `upper` - 1; what changed
    since `previous` - 1 (None: it was not consumed before, or what changed since is not known).

    Where windows take late rows for a while only, `consumed` is how far it was consumed by what the collection holds
    (None: that says nothing of it), and `ends` are the ends of its intervals; where late rows count in the next window,
    rows are judged `judged_from` some time before that (model/window/judged.py). With `all_judged` these are all there
    were, as all of its history is judged, whatever of it was consumed."""

    name: str
    url: str
    state: Arrangement
    upper: int
    previous: int | None = None
    consumed: int | None = None
    ends: tuple[int, ...] = ()
    judged_from: int | None = None
    all_judged: bool = False

    @property
    def judging(self) -> Judging:
        """How late its rows came."""
        if self.all_judged:
            return Judging(0, self.ends)
        function = self.state.function
        return judging_of(
            self.ends,
            since=function.since,
            merged=not function.changes_nothing,
            consumed=self.consumed,
            only_new=self.previous is not None,
            judged_from=self.judged_from,
        )

    @property
    def shape(self) -> InputShape:
        """Its columns, as a definition sees them."""
        return shape_of(self.name, self.state.collection)


def shape_of(name: str, collection: Collection) -> InputShape:
    """The columns of a collection, as a definition sees them under that name."""
    key = tuple(column.name for column in collection.key)
    laid_out_by = collection.layout.by if collection.layout else ""
    return InputShape(name, collection.columns, key, collection.kind.one_value, laid_out_by)


@dataclass(frozen=True)
class Computation:
    """Compute what the derived collection of `state`, at `url`, differs by from its definition over the `inputs`, and
    write that as parts under `prefix`.

    D is computed at its frontier `upper` (u); it was corrected to `previous` before (0: never). What differs is
    written at u - 1; `by_row` at the times of the rows it comes from, from `previous` on. A `mode` of `whole` compares
    all that D holds, what is unsealed and not yet due too, with all that it should. A definition in Python has no
    `recipe`.
    """

    url: str
    state: Arrangement
    definition: Definition
    recipe: Recipe | None
    mode: Mode
    inputs: tuple[Input, ...]
    previous: int
    upper: int
    prefix: str
    validity: Validity | None = None

    @property
    def collection(self) -> Collection:
        return self.state.collection

    @property
    def name(self) -> str:
        return self.collection.name

    @property
    def width(self) -> int:
        """By about how much the frontier moves on each time."""
        return max(1, self.upper - self.previous) if self.previous else DAY

    @property
    def rows_keep_times(self) -> bool:
        """Whether rows have the times of the input's row that each comes from."""
        return self.recipe is not None and self.recipe.by_row is not None

    def input(self, name: str) -> Input:
        return next(input_ for input_ in self.inputs if input_.name == name)


@dataclass(frozen=True)
class Written:
    """What one task wrote: its parts, and how many rows, with their multiplicities, it added and retracted."""

    parts: tuple[Part, ...]
    added: int
    retracted: int


@dataclass(frozen=True)
class Computed:
    """What a computation came to: the parts written (none: nothing differs), how many rows were added and retracted,
    with their multiplicities, and the rows and bytes at rest that were read for it. Of windows, how many of the rows
    that were looked at (what changed, or all) are in none, because what these are on is null; and of what is new
    how much came late, where that is not counted for ever. `way` says how it was computed (None: nothing was)."""

    parts: tuple[Part, ...]
    added: int
    retracted: int
    rows_read: int
    bytes_read: int
    unplaced: int = 0
    late: Lateness = NOT_LATE
    way: Way | None = None

    @property
    def rows(self) -> int:
        """Rows written."""
        return sum(part.rows for part in self.parts)

    @property
    def digest(self) -> int:
        return sum(part.digest for part in self.parts) % DIGEST_MODULUS


@dataclass(frozen=True)
class Differing:
    """A row by which a derived collection and its definition differ: the values of its columns as text, how many times
    it should be there and how many times it is."""

    row: tuple[tuple[str, str], ...]
    desired: int
    stored: int

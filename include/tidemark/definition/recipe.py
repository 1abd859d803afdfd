"""What an executor needs of a definition to compute it, whole or for what changed: queries, written out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tidemark.model.collection import Column, ColumnType, ValueType
from tidemark.model.derived import Mode
from tidemark.model.expression import Projection
from tidemark.model.window.aggregate import Function
from tidemark.model.window.bands import Bands
from tidemark.model.window.kinds import AlignedKind, Session, Sliding

TIME, EVENT_TIME, DIFF = "_time", "_event_time", "_diff"
"""Columns that views of changes have besides the input's own."""
HAPPENED = "_happened"
"""The column of the view of an input, and of its changes, that says when a row happened, as a timestamp: where windows
are on event times. A row is there once for each of its event times then."""
TOUCHED = "_touched"
"""The view that holds the key values whose rows must be recomputed, in columns `k0`, `k1`, …."""
DELTA = "_delta"
"""The view of what `by_key.delta` gives: by how much the groups' sums grew."""
CURRENT = "_current"
"""The view of the current rows of the groups of DELTA (or of more), with their hidden columns."""
LEARNED = "_learned"
"""The column of an input's updates that says up to where it was complete when they came (model/window/judged.py)."""
BAND = "_band"
"""The column of rows and cells that says of which windows they are, by where these start (model/window/bands.py)."""


def changes_of(name: str) -> str:
    """What the view of an input's changes is called: its columns, and TIME, EVENT_TIME and DIFF."""
    return f"_changes_of_{name}"


@dataclass(frozen=True)
class InputShape:
    """An input as a definition sees it: its columns by name; which of them are its key; whether a key has one value; by
    which column rows are laid out, if not by their key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    one_value: bool = False
    laid_out_by: str = ""

    def with_columns(self, *more: Column) -> InputShape:
        """An input that has more columns besides its own."""
        return replace(self, columns=(*self.columns, *more))


@dataclass(frozen=True)
class ByRow:
    """A query over the view of one input's changes (`changes_of(input)`), which has TIME, EVENT_TIME and DIFF too: the
    definition's columns, and these three of the row each comes from."""

    input: str
    select: str


@dataclass(frozen=True)
class SumColumn:
    """A column of `ByKey.sums`, computed from the input's column `of`: its sum, in its `type`, or the `count` of its
    values that are not null; without `of` the count of rows. One that is `null_without` another, a count, is null where
    that is 0."""

    name: str
    of: str | None = None
    count: bool = False
    null_without: str | None = None
    type: ValueType = ColumnType.INT


@dataclass(frozen=True)
class MeanColumn:
    """A column of a definition that shows one of `ByKey.sums`, `total`, divided by another, `count`, and null where
    that is 0: as the float next to the total, divided, or as the decimal of its `type` next to the quotient."""

    name: str
    total: str
    count: str
    type: ValueType


@dataclass(frozen=True)
class DeltaPlan:
    """A delta that needs no query: the groups' `keys` are columns of the input, and the sums count rows, or add up
    whole numbers or decimals in columns of it; `rows` is the one that counts rows. What is shown besides are
    `means`."""

    keys: tuple[str, ...]
    sums: tuple[SumColumn, ...]
    rows: str
    means: tuple[MeanColumn, ...] = ()


@dataclass(frozen=True)
class AggregateColumn:
    """A column of groups: what a function computes from the values of the input's column `of` (None: `count`, of rows)
    that are not null, in its `type`: the least or greatest in Spark's order, a sum or mean that is exact and, of
    floats, rounded once; of sessions also the least of the first instant that has values, or the greatest of the last
    one. Of no values all but counts are null, or 0 where they are `kept`, to be added to. With `in_parts` a sum of
    floats is a list of floats that add up to it exactly. A collection has the texts of another column, `texts`, where
    that has the values as JSON (None: the values need no such column)."""

    name: str
    function: Function
    of: str | None
    type: ValueType
    kept: bool = False
    at: float | None = None
    in_parts: bool = False
    texts: str | None = None


@dataclass(frozen=True)
class GroupPlan:
    """Groups that need no query: their `keys` are columns of the input, which `ByKey.key_columns` shows in this order;
    all others of the definition's columns, and the hidden ones, are `aggregates`. Rows are in order of the instants in
    the column `on`, where an aggregate asks for it."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]
    on: str | None = None


@dataclass(frozen=True)
class ByKey:
    """Only what some key values touch is computed.

    `touched`: by input, a query over the view of its changes (`changes_of(input)`) that gives their key values as `k0`,
    `k1`, …; nulls are values.
    `select`: the definition over the inputs' views, restricted to the values in the view TOUCHED.
    `key_columns`: the definition's columns that hold k0, k1, …, by which the current rows are found.
    `clustered`: by input, the leading key columns of it that some of k0, k1, … are, as pairs of that column and the
    name of the value (`k1`), in the key's order: only rows with these values need to be read.
    `delta` (None: groups are recomputed): a query over the view of the one input's changes that gives for each group
    k0, k1, … and by how much each column of `sums` grew; groups where nothing did are not left out.
    `sums`: the definition's columns that are added up, and the hidden ones, which come last.
    `grown`: a query over the views DELTA and CURRENT that gives the rows of these groups as they are to be: the columns
    of the definition and the hidden ones. A group without rows is not in it; one with fewer than none raises.
    `delta_plan`: what `delta` and `grown` say, where it is so little that changes at hand are added up without Spark.
    `columns`: by input, where `touched` asks for nothing but columns of it, which ones k0, k1, … are.
    `grouped`: what `select` says, where it is so little that rows at hand are grouped without Spark.
    """

    touched: Mapping[str, str]
    select: str
    key_columns: tuple[str, ...]
    clustered: Mapping[str, tuple[tuple[str, str], ...]]
    delta: str | None = None
    sums: tuple[str, ...] = ()
    grown: str | None = None
    delta_plan: DeltaPlan | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    grouped: GroupPlan | None = None


@dataclass(frozen=True)
class SlidingPlan:
    """Sliding windows over the rows of one input.

    `by`: the input's columns by which windows are distinguished; `on`: the one that says when a row happened.
    `rows`: a query over the view of the input, or of its changes under the input's name: those of its rows that are in
    windows, with the column AT.
    `valued`: a query over what `rows` gives, under the input's name: the columns of `by`, AT, and those of which the
    `aggregates` are, whose types Spark knows. `bound` is the type of the bounds of windows.
    `bounded_lateness` (None: late rows count for ever): rows have the column BAND, too.
    `of_columns`: the aggregates of rows that are projected without Spark, where they can be.
    """

    input: str
    by: tuple[str, ...]
    on: str
    kind: Sliding
    rows: str
    valued: str
    aggregates: tuple[ValueColumn, ...]
    bound: ColumnType
    bounded_lateness: BoundedLateness | None = None
    of_columns: tuple[AggregateColumn, ...] | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether late rows count for a limited time."""
        return self.bounded_lateness is not None


@dataclass(frozen=True)
class ValueColumn:
    """An aggregate of a column of rows that Spark gives; with `texts` another one has the values as JSON."""

    name: str
    function: Function
    of: str | None
    at: float | None = None
    texts: str | None = None


@dataclass(frozen=True)
class BoundedLateness:
    """Sliding windows take late rows for `lateness` µs after they closed, which they do `grace` µs after their end.
    `columns` are those that are needed of what `rows` gives, `by` among them."""

    grace: int
    lateness: int
    columns: tuple[str, ...]

    def bands(self, kind: Sliding, learned: Iterable[int]) -> Bands:
        """The bands of starts where rows came at these times."""
        return Bands.of(kind, self.grace, self.lateness, learned)


@dataclass(frozen=True)
class SessionPlan:
    """Sessions of the rows of one input; `by`, `on`, `rows`, `valued`, `aggregates`, `bound` and `of_columns` as of
    SlidingPlan. `columns` are those of the input that `valued` looks at.

    Of sessions that take late rows for a while only, one that ends at e takes none that is learned at e + `after` or
    later, `rows` is a query over the view of the input's updates, and `valued` over rows with START and END, too."""

    input: str
    by: tuple[str, ...]
    on: str
    kind: Session
    rows: str
    columns: tuple[str, ...]
    valued: str
    aggregates: tuple[ValueColumn, ...]
    bound: ColumnType
    after: int | None = None
    of_columns: tuple[AggregateColumn, ...] | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether late rows count for a limited time."""
        return self.after is not None


@dataclass(frozen=True)
class WindowAssignment:
    """Rows of an input, once for each window of a `kind` that they are in, by arithmetic or the calendar alone: those
    of which the column `on` is not null, with the columns START and END, whose type is `bound`. Rows of one window are
    equal in the columns `by`.

    Where late rows count for a limited time, an update counts in a window while its input was complete to less than
    `frozen_after` microseconds past the window's end when it came (None: for ever). With `grace_of_next` one that came
    late for all of its windows counts in the first one that ended later than so long before where the input was
    complete then; so that none can be retracted."""

    kind: AlignedKind
    on: str
    by: tuple[str, ...]
    bound: ColumnType
    frozen_after: int | None = None
    grace_of_next: int | None = None


@dataclass(frozen=True)
class WindowedRows:
    """Aligned windows as queries find them: `whole` and `by_key` of the recipe are over rows of `input` once for each
    window that they count in.

    `rows`: a query over the view of the input, or of its updates, under the input's name: those of its rows that are in
    windows, with the column AT, by which the `assignment` is. `columns` are those that are needed of it then.
    `valued`, `aggregates`: as of SlidingPlan, where Spark gives values for the kernel; which groups these by `grouped`.
    """

    input: str
    columns: tuple[str, ...]
    rows: str
    assignment: WindowAssignment
    valued: str = ""
    aggregates: tuple[ValueColumn, ...] = ()
    grouped: GroupPlan | None = None


@dataclass(frozen=True)
class JoinPlan:
    """A join of rows at hand. By input, in the order of the query, `columns` says which of its columns are needed, and
    what these are called in joined rows. Rows are joined where the pairs of `equal` columns are equal. Those of the
    inputs in `left` are joined to what all others are joined to, in this order and where such pairs are equal (a column
    of an input before, and its own): what equals none of them stays, with nulls. Of joined rows those are kept that the
    projection keeps (None: all, as they are), and `shown` says which of their columns the definition's are, of which
    `types`."""

    columns: Mapping[str, Mapping[str, str]]
    equal: tuple[tuple[str, str], ...]
    left: Mapping[str, tuple[tuple[str, str], ...]]
    projection: Projection | None
    shown: Mapping[str, str]
    types: Mapping[str, ValueType]


@dataclass(frozen=True)
class Recipe:
    """A definition, analysed. `whole` computes all of it over views named as its inputs, in which a row occurs as often
    as its multiplicity says; `columns` are its columns in order; `key` is the inferred one (None: it must be declared);
    `hidden` are columns of ours that `whole` gives behind them (`select` of `by_key` too). `mode` is the cheapest that
    is right, and `why` says, a line each, what decided against a cheaper one. Of data-driven windows `windowed` says
    how they are computed; `whole` then has their columns, but not their rows. With `happened` the views of the input,
    and of its changes, have the column HAPPENED. `used` says by input which of its columns any of these queries looks
    at, and maybe others (None: all of them). Of aligned windows `in_windows` says what rows are in which of them; and
    `placed` the same of rows at hand, where what `by_key` says without queries is over these. `projection` says which
    rows at hand count, and what columns they have besides (None: all as they are); before `placed`. `left_to_spark`
    says why queries of Spark's compute it, where no kernel does: a line, or nothing. `joined` is the query of an inner
    join over views with DIFF, by which it is computed from what changed (definition/joined.py); `join` says the same of
    rows at hand.
    """

    mode: Mode
    why: tuple[str, ...]
    columns: tuple[str, ...]
    key: tuple[str, ...] | None
    whole: str
    hidden: tuple[Column, ...] = ()
    by_row: ByRow | None = None
    by_key: ByKey | None = None
    windowed: SlidingPlan | SessionPlan | None = None
    happened: bool = False
    used: Mapping[str, tuple[str, ...]] | None = None
    in_windows: WindowedRows | None = None
    placed: WindowAssignment | None = None
    projection: Projection | None = None
    left_to_spark: str = ""
    joined: str = ""
    join: JoinPlan | None = None

"""What an executor needs of a definition to compute it, whole or for what changed: queries, written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.definition.state import State
from tidemark.model.collection import Column
from tidemark.model.derived import Mode
from tidemark.model.window.kind import Session, Sliding

TIME, EVENT_TIME, DIFF = "_time", "_event_time", "_diff"
"""Columns that views of changes have besides the input's own."""
TOUCHED = "_touched"
"""The view that holds the key values whose rows must be computed anew, in columns `k0`, `k1`, …."""
DELTA = "_delta"
"""The view of what `by_key.delta` gives: by how much the groups' sums grew."""
HELD = "_held"
"""The view of the rows that stand now in the groups of DELTA (or of more), with their hidden columns."""
CELLED = "_windows"
"""The view of windows that were put together of cells."""


def changes_of(name: str) -> str:
    """What the view of an input's changes is called: its columns, and TIME, EVENT_TIME and DIFF."""
    return f"_changes_of_{name}"


@dataclass(frozen=True)
class InputShape:
    """An input as a definition sees it: its columns by name; which of them are its key; whether a key has one value."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    one_value: bool = False


@dataclass(frozen=True)
class ByRow:
    """A query over the view of one input's changes (`changes_of(input)`), which has TIME, EVENT_TIME and DIFF too: the
    definition's columns, and these three of the row each comes from."""

    input: str
    select: str


@dataclass(frozen=True)
class ByKey:
    """Only what some key values touch is computed.

    `touched`: by input, a query over the view of its changes (`changes_of(input)`) that gives their key values as `k0`,
    `k1`, …; nulls are values.
    `select`: the definition over the inputs' views, restricted to the values in the view TOUCHED.
    `held`: the definition's columns that hold k0, k1, …, by which the rows that stand now are found.
    `clustered`: by input, the leading key columns of it that some of k0, k1, … are, as pairs of that column and the
    name of the value (`k1`), in the key's order: only rows with these values need to be read.
    `delta` (None: groups are computed anew): a query over the view of the one input's changes that gives for each group
    k0, k1, … and by how much each column of `sums` grew; groups where nothing did are not left out.
    `sums`: the definition's columns that are added up, and the hidden ones, which come last.
    `grown`: a query over the views DELTA and HELD that gives the rows of these groups as they are to be: the columns of
    the definition and the hidden ones. A group without rows is not in it; one with fewer than none raises.
    """

    touched: Mapping[str, str]
    select: str
    held: tuple[str, ...]
    clustered: Mapping[str, tuple[tuple[str, str], ...]]
    delta: str | None = None
    sums: tuple[str, ...] = ()
    grown: str | None = None


@dataclass(frozen=True)
class Slid:
    """Sliding windows over the rows of one input, put together of *cells*, what is known of each instant.

    `by`: the input's columns by which windows are told apart.
    `rows`: a query over the view of the input, or of its changes under the input's name: those of its rows that are in
    windows, with the column AT.
    `cells`: a query over what `rows` gives, under the input's name, that gives for each instant the values of `by` as
    `k0`, `k1`, …, AT, and the `states`.
    `windows`: a query over the view CELLED of windows, which has `k0`, `k1`, …, START and END in microseconds, and the
    states of each, that gives the columns of the definition.
    """

    input: str
    by: tuple[str, ...]
    kind: Sliding
    rows: str
    cells: str
    states: tuple[State, ...]
    windows: str


@dataclass(frozen=True)
class InSessions:
    """Sessions of the rows of one input; `by` and `rows` as of Slid. `windows`: a query over `columns` of what `rows`
    gives and AT, under the input's name, with the column START, the microsecond at which the session of each row
    begins."""

    input: str
    by: tuple[str, ...]
    kind: Session
    rows: str
    columns: tuple[str, ...]
    windows: str


@dataclass(frozen=True)
class Recipe:
    """A definition, analysed. `whole` computes all of it over views named as its inputs, in which a row stands as often
    as its multiplicity says; `columns` are its columns in order; `key` is the inferred one (None: it must be declared);
    `hidden` are columns of ours that `whole` gives behind them (`select` of `by_key` too). `mode` is the cheapest that
    is right, and `why` says, a line each, what decided against a cheaper one. Of windows that lie where rows are,
    `windowed` says how they are computed; `whole` then has their columns, but not their rows.
    """

    mode: Mode
    why: tuple[str, ...]
    columns: tuple[str, ...]
    key: tuple[str, ...] | None
    whole: str
    hidden: tuple[Column, ...] = ()
    by_row: ByRow | None = None
    by_key: ByKey | None = None
    windowed: Slid | InSessions | None = None

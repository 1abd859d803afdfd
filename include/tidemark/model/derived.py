"""Derived collections: how one follows from its inputs, and how far these were consumed.

A derived collection D has inputs, each a collection, and a definition, a query over them. The step `correct` is to it
what `ingest` is to a landed one: it writes what differs between what the definition says now and what D holds. Each
commit of it records a *consumption*: D's frontier u, and of each input how far it was consumed, its frontier c_i. Then

    D.as_of(u - 1) = definition(input_i.as_of(c_i - 1))

for ever, under the definition then in force.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.window.lateness import NOT_LATE, Lateness
from tidemark.model.window.windows import Windows


class Refresh(StrEnum):
    """What an owner asks for: `auto`, the cheapest mode that is right; `incremental`, which is refused where only the
    whole can be computed; `whole`, always all of it."""

    AUTO = "auto"
    INCREMENTAL = "incremental"
    WHOLE = "whole"


class Mode(StrEnum):
    """How a run computes what differs: from the changed input rows alone (`by_row`), from the groups or join keys they
    touch (`by_key`), or from all (`whole`). All three give the same rows."""

    BY_ROW = "by_row"
    BY_KEY = "by_key"
    WHOLE = "whole"


_NULL_IS_A_VALUE = "windows by null"
"""Added to the fingerprint of windows by columns: until format 3 a row where one of these is null was in no window, so
what was computed then must be recomputed, unless none of them can be null."""
_ALWAYS_SAID = frozenset(
    {
        *("by", "on", "kind", "aggregates", "where", "grace", "late", "max_lateness", "early"),
        *("name", "function", "of", "at"),
        *("size", "offset", "advance", "sampling", "step", "unit", "zone"),
        *("clamp_start_at_zero", "gap", "exact_gap_merges", "max_length"),
    }
)
"""The fields of windows that are in their fingerprint whatever they say, as they were in 0.5. One that came later is in
it only where it does not say its default: so that a new release finds the definitions it knew unchanged."""


@dataclass(frozen=True)
class Definition:
    """A query over the inputs by their names: `select`, of Spark SQL; or `function`, `module:name` of a function of
    DataFrames, distinguished from its earlier self by `version`, which can be computed for some values of the columns
    `by` alone (none: only whole); or `windows` over the one input."""

    select: str = ""
    function: str = ""
    version: str = ""
    by: tuple[str, ...] = ()
    windows: Windows | None = None

    def __post_init__(self) -> None:
        if [bool(self.select), bool(self.function), self.windows is not None].count(True) != 1:
            raise InvalidUsage("a definition is a select, a python function or windows, exactly one of them")
        if self.function and not self.version:
            raise InvalidUsage(f"python definition {self.function} has no version; write version: '1', and raise it")
        if not self.function and (self.version or self.by):
            raise InvalidUsage("version and by belong to python definitions; a select is its own version")

    @property
    def fingerprint(self) -> str:
        """Another one for another definition, and the same in each release."""
        return self._fingerprint(_NULL_IS_A_VALUE)

    @property
    def before_null_was_a_value(self) -> str:
        """What the fingerprint was until format 3."""
        return self._fingerprint("")

    def _fingerprint(self, mark: str) -> str:
        said: list[Any] = [self.select, self.function, self.version, self.by]
        if self.windows is not None:
            said += [_said(self.windows), *([mark] if mark and self.windows.by else [])]
        text = json.dumps(said, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _said(value: Any) -> Any:
    """What a value of windows says, as dicts and lists."""
    if isinstance(value, tuple):
        return [_said(each) for each in value]
    if not is_dataclass(value):
        return value
    return {
        each.name: _said(getattr(value, each.name))
        for each in fields(value)
        if each.name in _ALWAYS_SAID or getattr(value, each.name) != each.default
    }


@dataclass(frozen=True)
class Validity:
    """Between which times a row is there: from `valid_from` (a column; None: as it is learned) until `valid_to` (a
    column; None: for ever), or for so many microseconds from `valid_from` on (`valid_for`). Where the column that says
    when it ends is null, it never does.

    Both bounds are values of the row, so that whoever retracts it later ends it where it was to end. Event times are
    no such bound: below `since` they were moved.
    """

    valid_from: str | None = None
    valid_to: str | None = None
    valid_for: int | None = None

    def __post_init__(self) -> None:
        if self.valid_from is None and self.valid_to is None and self.valid_for is None:
            raise InvalidUsage("a validity names valid_from, valid_to or valid_for")
        if self.valid_to is not None and self.valid_for is not None:
            raise InvalidUsage(f"valid_to {self.valid_to} and valid_for both say when a row ends; keep one of them")
        if self.valid_for is not None and self.valid_from is None:
            raise InvalidUsage("valid_for counts from valid_from; name the column that says from when a row is there")
        if self.valid_for is not None and self.valid_for < 1:
            raise InvalidUsage(f"valid_for is {self.valid_for} µs; it must be 1 or more")


@dataclass(frozen=True)
class Derived:
    """The origin of a collection that is computed from others.

    `inputs` are names of collections, as the definition calls them. `history` (µs) is the distance of the frontiers of
    a first build (0: one frontier, the newest). `max_lag` (µs): the inputs' history is kept for it no longer than this
    after it was corrected last (None: as long as it exists).
    """

    inputs: tuple[str, ...]
    definition: Definition
    refresh: Refresh = Refresh.AUTO
    history: int = 0
    max_lag: int | None = None
    validity: Validity | None = None
    kind: Literal["derived"] = "derived"

    def __post_init__(self) -> None:
        if not self.inputs:
            raise InvalidUsage("a derived collection has one input or more; name them in from")
        if repeated := sorted({name for name in self.inputs if self.inputs.count(name) > 1}):
            raise InvalidUsage(
                f"from names {', '.join(repeated)} twice; a query may use one input as often as it likes"
            )
        if self.history < 0:
            raise InvalidUsage(f"history is {self.history} µs; it must be 1 or more, or left out")
        if self.max_lag is not None and self.max_lag < 1:
            raise InvalidUsage(f"max_lag is {self.max_lag} µs; it must be 1 or more")
        if self.definition.windows is not None and len(self.inputs) > 1:
            raise InvalidUsage(
                f"windows are over one input, and from names {', '.join(self.inputs)}; make a derived collection of "
                "the rows that belong together, and the windows over that"
            )
        if self.definition.function and self.validity is not None:
            raise InvalidUsage("validity needs a select whose rows follow one from one; it takes no python")
        if self.definition.windows is not None and self.validity is not None:
            raise InvalidUsage("a window is there from when it closes; leave valid_from, valid_to and valid_for out")

    @property
    def fingerprint(self) -> str:
        """Another one wherever the same inputs may give other rows: a run that finds another is whole."""
        return self._fingerprint(self.definition.fingerprint)

    @property
    def before_null_was_a_value(self) -> str:
        """What the fingerprint was until format 3: another one of windows by columns."""
        return self._fingerprint(self.definition.before_null_was_a_value)

    def _fingerprint(self, definition: str) -> str:
        validity = None if self.validity is None else astuple(self.validity)
        text = json.dumps([self.inputs, definition, validity], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Root:
    """How far a landed collection was consumed, by whatever ways: its changes below `upper`. `incarnation`
    distinguishes it from another of the same name."""

    collection: str
    upper: int
    incarnation: str = ""


@dataclass(frozen=True)
class Consumed:
    """How far one input was consumed: its changes below `upper`, as its state of that `version` had them.
    `incarnation` distinguishes the input from another of the same name; `roots` are the landed collections below it."""

    input: str
    upper: int
    version: int
    incarnation: str
    roots: tuple[Root, ...] = ()


@dataclass(frozen=True)
class Consumption:
    """What one commit of `correct` records: D is `upper` (u), and complete below `complete_below`, having consumed the
    inputs so far, under that definition (`Collection.computed_as`). `batch` is what it wrote (None:
    nothing differed). `ended`: no input will have another change that is on time. `building`: a first build, which
    has more of the inputs' history ahead. `late`: of windows that take late rows for a while only, what came too late
    since they were first computed under that definition."""

    upper: int
    complete_below: int
    inputs: tuple[Consumed, ...]
    definition: str
    batch: str | None = None
    ended: bool = False
    building: bool = False
    late: Lateness = NOT_LATE

    def of(self, name: str) -> Consumed | None:
        """How far an input was consumed; None if it was none."""
        return next((consumed for consumed in self.inputs if consumed.input == name), None)

    @property
    def roots(self) -> tuple[Root, ...]:
        """The landed collections below all inputs, each once: inputs agree on those they share."""
        return tuple(
            sorted({root for consumed in self.inputs for root in consumed.roots}, key=lambda root: root.collection)
        )

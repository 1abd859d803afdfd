"""The sections of a collection file that define windows: `windows` and `aggregates`.

The string below a field is its text in docs/reference/collection-file.md, as those of config/declaration.py are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from tidemark.config.nearest import nearest
from tidemark.config.section import STRICT, Nothing
from tidemark.config.values import ColumnName, Duration, checked, duration, late_section
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_duration
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kind import (
    Calendar,
    Cumulate,
    Hopping,
    Session,
    Sliding,
    Tumbling,
    Unit,
    WindowKind,
)
from tidemark.model.window.windows import Late, Windows
from tidemark.model.window.zone import zone_named

ROWS = "*"
"""What `count` may be of instead of a column: the rows."""


def _offset(value: Any) -> int:
    """A duration, which may be negative."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.startswith("-"):
        return -parse_duration(text[1:])
    if isinstance(text, bool | float) or text is None:
        raise InvalidUsage(f"not a duration: {value!r}; write 15m or -15m")
    return parse_duration(text)


def _short(field: str) -> Any:
    """A validator for a section that a value of its first field is short for."""
    return checked(lambda value: value if isinstance(value, dict) else {field: value})


def _zone(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidUsage(f"a time zone is text, found {value!r}; quote it")
    zone_named(value)
    return value


def _names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _row_expression(value: Any) -> str:
    """Spark SQL over a row of the input. A field that is there and empty is refused: were it taken for one that is left
    out, other rows would count than are meant."""
    if value is None:
        raise InvalidUsage("an expression of Spark SQL is text, found None; write one, or leave the field out")
    if not isinstance(value, str) or not value.strip():
        raise InvalidUsage(f"an expression of Spark SQL is text, found {value!r}; quote it")
    return value.strip()


Offset = Annotated[int, checked(_offset)]
RowExpression = Annotated[str | None, checked(_row_expression)]
SomeDuration = Annotated[int | None, checked(duration)]
"""May be left out, and is not empty where it is there."""
Zone = Annotated[str, checked(_zone)]


class _Section(BaseModel):
    model_config = STRICT


class TumblingSection(_Section):
    """Windows of one size side by side: a row is in one of them. `tumbling: 1h` is short for `{size: 1h}`."""

    size: Duration
    """How long a window is; of an `on` that holds whole numbers, how many."""
    offset: Offset = 0
    """By how much windows begin after midnight UTC of 1970-01-01, modulo the size: `15m`, or `-15m`."""


class HoppingSection(_Section):
    """Windows of one size that begin at regular distances: a row is in all that hold it."""

    size: Duration
    """How long a window is."""
    every: Duration
    """The distance between the beginnings of windows."""
    offset: Offset = 0
    """By how much windows begin after midnight UTC of 1970-01-01, modulo `every`."""
    sampling: bool = False
    """Whether windows may leave gaps between them: rows in a gap are in no window."""


class CumulateSection(_Section):
    """Windows that begin together every `size` and end `step` after each other: the total of the day by each hour."""

    size: Duration
    """How long the longest window is, and the distance between the beginnings of windows."""
    step: Duration
    """By how much a window is longer than the one before; a divisor of the size."""
    offset: Offset = 0
    """By how much windows begin after midnight UTC of 1970-01-01, modulo the size."""


class CalendarSection(_Section):
    """Days, weeks (from Monday), months, quarters or years, as clocks in a zone show them. `calendar: day` is short for
    `{unit: day}`."""

    unit: Literal["day", "week", "month", "quarter", "year"]
    """What is a window."""
    zone: Zone = "UTC"
    """The time zone, as `America/New_York`: a day on which clocks change has 23 or 25 hours."""


class SlidingSection(_Section):
    """A window for each set of rows within `size` of each other, both ends included. `sliding: 30m` is short for
    `{size: 30m}`."""

    size: Duration
    """The largest distance between rows of a window."""
    clamp_start_at_zero: bool = False
    """Whether no window begins before 1970, as Kafka Streams has it."""


class SessionSection(_Section):
    """Rows of which each follows another within a gap. `session: 45m` is short for `{gap: 45m}`."""

    gap: Duration
    """How long after a row the next of its session comes at most."""
    exact_gap_merges: bool = True
    """Whether rows at a distance of exactly the gap belong to one session."""
    max_length: SomeDuration = None
    """How long after its first row a session's rows come: the next begins a new session. Left out, however long."""


class ReemitSection(_Section):
    """A late row corrects the windows it belongs to."""

    max_lateness: SomeDuration = None
    """How long after a window closed rows still correct it; left out, for ever."""


class LateRows(_Section):
    """What a row does that comes when a window it belongs to has closed; exactly one policy."""

    reemit: ReemitSection | None = None
    """The window is corrected: its row is taken back, and the right one added."""
    discard: Nothing | None = None
    """The window stays as it was."""
    next_window: Nothing | None = None
    """A row that is late for all of its windows counts in the earliest one of its key that is open when it comes, with
    its own time. Of `tumbling`, `hopping`, `cumulate` and `calendar`, over events that land (envelope `append`) with
    `retention: all` and without `reprocess_for`."""


class WindowsSection(_Section):
    """Windows over the rows of the one input. Exactly one kind: `tumbling`, `hopping`, `cumulate`, `calendar`,
    `sliding` or `session`.

    A row of the collection is a window that holds rows; its key is the columns `by`, `window_start` and `window_end`.
    """

    by: Annotated[list[ColumnName], checked(_names)] = []
    """The input's columns for each of whose values there are windows; one alone needs no list, and without any there
    are windows of all rows. Null is a value: rows where one is null have windows of their own."""
    on: ColumnName
    """When a row happened: a column that is a timestamp, a date (midnight UTC) or a whole number. A row where it is
    null is in no window, and counted. `event_time`, where the input has no column of that name: the event time of the
    input's rows. They must land as events (envelope `append` or `updates`), with `retention: all`."""
    tumbling: Annotated[TumblingSection, _short("size")] | None = None
    """Windows side by side: `1h`."""
    hopping: HoppingSection | None = None
    """Windows that overlap: `{size: 1h, every: 10m}`."""
    cumulate: CumulateSection | None = None
    """Windows that grow: `{size: 1d, step: 1h}`."""
    calendar: Annotated[CalendarSection, _short("unit")] | None = None
    """Windows of the calendar: `day`, or `{unit: month, zone: America/New_York}`."""
    sliding: Annotated[SlidingSection, _short("size")] | None = None
    """A window for each set of rows that are so close together: `30m`."""
    session: Annotated[SessionSection, _short("gap")] | None = None
    """Rows that follow each other: `45m`."""
    where: RowExpression = None
    """Which rows count, as a condition of Spark SQL over the input's columns."""
    grace: Duration = 0
    """How long after its end a window closes."""
    late: Annotated[LateRows, checked(late_section)] = LateRows(reemit=ReemitSection())
    """What rows of a closed window do: `reemit` (they correct it), `{reemit: {max_lateness: 3d}}`, `discard`, or
    `next_window`. Of sessions `discard` and `max_lateness` need an input that lands with `retention: all`."""
    early: bool = False
    """Whether the rows of open windows are there at once, and change until the window closes."""

    def windows(self, aggregates: Mapping[str, AggregateSection]) -> Windows:
        """The windows that are meant. InvalidUsage for what is none (`problem` says where)."""
        late = next(policy for policy in Late if policy in self.late.model_fields_set)
        return Windows(
            by=tuple(self.by),
            on=self.on,
            kind=self._kind,
            aggregates=tuple(section.aggregate(name) for name, section in aggregates.items()),
            where=self.where or "",
            grace=self.grace,
            late=late,
            max_lateness=self.late.reemit.max_lateness if self.late.reemit else None,
            early=self.early,
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that are written, of which there must be one."""
        return tuple(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def _kind(self) -> WindowKind:
        if self.tumbling:
            return Tumbling(self.tumbling.size, self.tumbling.offset)
        if self.hopping:
            return Hopping(self.hopping.size, self.hopping.every, self.hopping.offset, self.hopping.sampling)
        if self.cumulate:
            return Cumulate(self.cumulate.size, self.cumulate.step, self.cumulate.offset)
        if self.calendar:
            return Calendar(Unit(self.calendar.unit), self.calendar.zone)
        if self.sliding:
            return Sliding(self.sliding.size, self.sliding.clamp_start_at_zero)
        if self.session:
            return Session(self.session.gap, self.session.exact_gap_merges, self.session.max_length)
        raise InvalidUsage(f"windows of no kind; write one of {', '.join(KINDS)}: tumbling: 1h")


KINDS = ("tumbling", "hopping", "cumulate", "calendar", "sliding", "session")


class AggregateSection(_Section):
    """An aggregate of the rows of a window: exactly one function of an expression over the input's columns. `flights:
    count` counts rows."""

    count: RowExpression = None
    """How many rows there are, or for how many an expression is not null."""
    sum: RowExpression = None
    """The sum of what is not null; exact, also of floats."""
    min: RowExpression = None
    """The least."""
    max: RowExpression = None
    """The greatest."""
    avg: RowExpression = None
    """The average of what is not null."""
    first: RowExpression = None
    """Of what is not null the earliest by `on`; of several at once the least."""
    last: RowExpression = None
    """Of what is not null the latest by `on`; of several at once the greatest."""
    collect: RowExpression = None
    """All that is not null, in order of `on`, as the text of a JSON array."""
    count_distinct: RowExpression = None
    """How many different values there are."""
    approx_distinct: RowExpression = None
    """About how many different values there are, by a sketch: 5 % off at most as a rule. Exact in sliding windows and
    sessions."""
    approx_quantile: RowExpression = None
    """A value, within 1 %, than which the share `at` of all is not larger."""
    at: float | None = None
    """Which quantile: 0.5 is the median."""
    where: RowExpression = None
    """The rows of the window that it counts, as a condition of Spark SQL."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions that are written, of which there must be one."""
        return tuple(one for one in Function if one in self.model_fields_set)

    def aggregate(self, name: str) -> Aggregate:
        """The aggregate that is meant. InvalidUsage for what is none."""
        if not self.functions:
            raise InvalidUsage(f"{name} has no function; write one of {', '.join(Function)}")
        if len(self.functions) > 1:
            raise InvalidUsage(f"{name} is {' and '.join(self.functions)}; keep one of them")
        (function,) = self.functions
        of = getattr(self, function) or ""
        return Aggregate(name, function, "" if of == ROWS else of, self.where or "", self.at)


def aggregate_section(value: Any) -> Any:
    """`flights: count` is short for `{count: '*'}`."""
    if isinstance(value, str):
        if value == Function.COUNT:
            return {"count": ROWS}
        if value in list(Function):
            raise InvalidUsage(f"{value} needs a column; write {{{value}: column}}")
        raise InvalidUsage(f"there is no aggregate {value!r}{nearest(value, list(map(str, Function)))}")
    if isinstance(value, dict) and isinstance(value.get("at"), int) and not isinstance(value["at"], bool):
        return value | {"at": float(value["at"])}
    if not isinstance(value, dict):
        raise InvalidUsage(f"{value!r} is no aggregate; write count, or a mapping as {{max: delay}}")
    return value


SECTIONS: dict[str, type[BaseModel]] = {
    "windows": WindowsSection,
    "tumbling": TumblingSection,
    "hopping": HoppingSection,
    "cumulate": CumulateSection,
    "calendar": CalendarSection,
    "sliding": SlidingSection,
    "session": SessionSection,
    "late": LateRows,
    "reemit": ReemitSection,
    "discard": Nothing,
    "next_window": Nothing,
}
"""The sections in and with `windows`, by the fields that hold them."""

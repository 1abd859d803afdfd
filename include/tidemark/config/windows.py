"""The sections of a collection file that define windows: `windows` and `aggregates`.

The string below a field is its text in docs/reference/collection-file.md, as those of config/declaration.py are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from tidemark.config.nearest import nearest
from tidemark.config.section import STRICT, Nothing
from tidemark.config.values import ColumnName, Duration, checked, late_section
from tidemark.config.windows_kinds import KIND_SECTIONS, SomeDuration
from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import WindowKind
from tidemark.model.window.windows import Late, Windows

ROWS = "*"
"""What `count` may be of instead of a column: the rows."""


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


RowExpression = Annotated[str | None, checked(_row_expression)]


class _Section(BaseModel):
    model_config = STRICT


class ReemitSection(_Section):
    """A late row corrects the windows it belongs to."""

    max_lateness: SomeDuration = None
    """How long after a window closed rows still correct it; left out, for ever."""


class LateRows(_Section):
    """What a row does that comes when a window it belongs to has closed; exactly one policy."""

    reemit: ReemitSection | None = None
    """The window is corrected: its row is retracted, and the right one added."""
    discard: Nothing | None = None
    """The window stays as it was."""
    next_window: Nothing | None = None
    """A row that is late for all of its windows counts in the earliest one of its key that is open when it comes, with
    its own time. Of every kind but `sliding` and `session`, over events that land (envelope `append`) with
    `retention: all` and without `reprocess_for`."""


class _Rows(BaseModel):
    """Which rows windows are over."""

    model_config = ConfigDict(defer_build=True)  # only WindowsSection is ever one

    by: Annotated[list[ColumnName], checked(_names)] = []
    """The input's columns for each of whose values there are windows; one alone needs no list, and without any there
    are windows of all rows. Null is a value: rows where one is null have windows of their own."""
    on: ColumnName
    """When a row happened: a column that is a timestamp, a date (midnight UTC) or a whole number. A row where it is
    null is in no window, and counted. `event_time`, where the input has no column of that name: the event time of the
    input's rows. They must land as events (envelope `append` or `updates`), with `retention: all`."""


_KINDS = [f"`{name}`" for name in KIND_SECTIONS]

if TYPE_CHECKING:
    _RowsAndKind = _Rows
else:
    _RowsAndKind = create_model(
        "_RowsAndKind",
        __base__=_Rows,
        **{name: (one.field, Field(None, description=one.of.summary)) for name, one in KIND_SECTIONS.items()},
    )


class WindowsSection(_RowsAndKind):
    __doc__ = f"""Windows over the rows of the one input. Exactly one kind: {", ".join(_KINDS[:-1])} or {_KINDS[-1]}.

    A row of the collection is a window that holds rows; its key is the columns `by`, `window_start` and `window_end`.
    """

    model_config = STRICT | ConfigDict(defer_build=False)
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
        return tuple(kind for kind in KIND_SECTIONS if getattr(self, kind) is not None)

    @property
    def _kind(self) -> WindowKind:
        for name in self.kinds:
            kind: WindowKind = KIND_SECTIONS[name].kind(getattr(self, name))
            return kind
        raise InvalidUsage(f"windows of no kind; write one of {', '.join(KIND_SECTIONS)}: tumbling: 1h")


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
    **{name: one.section for name, one in KIND_SECTIONS.items()},
    "late": LateRows,
    "reemit": ReemitSection,
    "discard": Nothing,
    "next_window": Nothing,
}
"""The sections in and with `windows`, by the fields that hold them."""

"""Windows as a picture: each a bar from its start to its end, as high as a value of its row, one strip a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.windows import CLOSED, REVISION
from tidemark.errors import InvalidUsage, listed, plain_line, require
from tidemark.model.instant import from_datetime
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.model.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png", ".pdf")
STRIPS = 12
"""Keys that one picture shows; of more, those with the most windows."""
LABEL = 28
"""Characters of a key beside its strip; a longer one is cut."""
MOST_WINDOWS = 20_000
"""Windows that one picture shows; with more the bars are thinner than a point, and the file is too large to open."""
_CLOSED, _OPEN, _CORRECTED = "#3b6ea5", "#9bb8d3", "#d9782d"
_ONE_AT_A_TIME = Lock()
"""matplotlib's settings are those of the process."""
HIGHEST = 1e300
"""A window is drawn this high, or low, at most: around the largest doubles no axis fits."""
_MARKED = "corrected after it was there"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (from_datetime(datetime(year, 1, 1, tzinfo=UTC)) for year in (1000, 9000))
"""What is drawn is between these: its axis goes on a little to both sides, and has dates from year 1 to 9999 only."""
_FAR = (
    "a window is outside the years 1000 to 9000, too far to be drawn; draw others: "
    "--where \"window_start >= '1000-01-01' AND window_end < '9000-01-01'\""
)


@dataclass
class Strip:
    """The windows of one key."""

    label: str
    starts: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    closed: list[bool] = field(default_factory=list)
    corrected: list[bool] = field(default_factory=list)
    clipped: int = 0


class Rows(Protocol):
    """Rows of windows, as `tidemark windows` shows them."""

    @property
    def collection(self) -> str: ...

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class Drawn:
    """What is drawn: the rows of an answer, what windows they are, and which they are in words (`as known at …`)."""

    answer: Rows
    windows: Windows
    known: str


def draw(drawn: Drawn, path: str, value: str | None = None) -> int:
    """Draw windows into a file (svg, png or pdf, by its name), as high as the column `value` of each (the first that is
    a number). Windows whose rows were corrected after they were there are marked. How many it shows.

    Raises InvalidUsage for another kind of file, for a column that is no number, for no windows, for too many, and for
    some that are too far away; MissingExtra without the extra `plot`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InvalidUsage(f"a picture is written as {listed(FORMATS)}, by the name of its file; not {path!r}")
    return _draw_to(drawn, value, path, suffix[1:])


def svg(drawn: Drawn, value: str | None = None) -> bytes:
    """What `draw` writes into a file that is called .svg. Raises what `draw` raises."""
    to = BytesIO()
    _draw_to(drawn, value, to, "svg")
    return to.getvalue()


def numbers_among(windows: Windows, schema: pa.Schema) -> list[str]:
    """The aggregates that windows can be drawn by."""
    numbers = {one.name for one in schema if _is_number(one.type)}
    return [one.name for one in windows.aggregates if one.name in numbers]


def _draw_to(drawn: Drawn, value: str | None, to: str | BytesIO, kind: str) -> int:
    require("matplotlib", "plot")
    column = _value(drawn, value)
    strips = _strips(drawn, column)
    if not strips:
        raise InvalidUsage(f"{drawn.answer.collection} has no windows to draw, {drawn.known}")
    shown = sorted(strips, key=lambda strip: -len(strip.starts))[:STRIPS]
    shown.sort(key=lambda strip: strip.label)
    with _ONE_AT_A_TIME:
        _write(drawn, shown, len(strips) - len(shown), column, to, kind)
    return sum(len(strip.starts) for strip in shown)


def _value(drawn: Drawn, asked: str | None) -> str:
    answer = drawn.answer
    own = numbers_among(drawn.windows, answer.schema)
    if asked is None and own:
        return own[0]
    if asked is None or asked not in own:
        said = f"{asked} is no number of {answer.collection}" if asked else f"{answer.collection} has no numbers"
        raise InvalidUsage(f"{said}; a window is drawn as high as one of {listed(own) or 'its numbers'}")
    return asked


def _is_number(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of))


def _strips(drawn: Drawn, column: str) -> list[Strip]:
    """The windows by key, in order. InvalidUsage for more than a picture can show."""
    answer = drawn.answer
    strips: dict[tuple[Any, ...], Strip] = {}
    by, count = drawn.windows.by, 0
    for rows in answer:
        count += rows.num_rows
        if count > MOST_WINDOWS:
            raise InvalidUsage(
                f"{answer.collection} has more than {MOST_WINDOWS:,} windows, more than a picture can show; draw some "
                f'of them: --where "{by[0] if by else WINDOW_START} = …"'
            )
        keys = list(zip(*(plain_values(rows.column(name)) for name in by), strict=True)) or [()] * rows.num_rows
        bounds = [_places(rows.column(name)) for name in (WINDOW_START, WINDOW_END)]
        values = rows.column(column).to_pylist()
        known = [rows.column(name).to_pylist() for name in (CLOSED, REVISION)]
        for key, start, end, value, closed, revision in zip(keys, *bounds, values, *known, strict=True):
            strip = strips.setdefault(key, Strip(_label(key)))
            strip.starts.append(start)
            strip.ends.append(end)
            height = float(value) if value is not None and isfinite(value) else 0.0
            strip.values.append(max(-HIGHEST, min(HIGHEST, height)))
            strip.clipped += abs(height) > HIGHEST
            strip.closed.append(closed)
            strip.corrected.append(revision > 0)
    return list(strips.values())


def _label(key: tuple[Any, ...]) -> str:
    text = plain_line(", ".join("null" if cell is None else str(cell) for cell in key))
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


def _places(column: pa.Array) -> list[Any]:
    """Where instants are on the axis: datetimes, or the numbers they are. InvalidUsage for no datetimes."""
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    micros = column.cast(pa.int64()).to_pylist()
    if any(not _FIRST <= at <= _LAST for at in micros):
        raise InvalidUsage(_FAR)
    return [_EPOCH + timedelta(microseconds=at) for at in micros]


def _write(drawn: Drawn, strips: Sequence[Strip], left: int, column: str, to: str | BytesIO, kind: str) -> None:
    # Without a display, and with the same bytes for the same windows.
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": drawn.answer.collection, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(11, 1.2 + 1.1 * len(strips)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(strips), 1, sharex=True, squeeze=False)[:, 0]
        highest = max((max(map(abs, strip.values)) for strip in strips), default=1.0) or 1.0
        for ax, strip in zip(axes, strips, strict=True):
            _draw(ax, strip, filled=not drawn.windows.kind.overlap)
            ax.set_ylim(min(0.0, *strip.values), highest * 1.15)
        figure.suptitle(_title(drawn, column, left, sum(strip.clipped for strip in strips)), fontsize=10)
        figure.legend(handles=_legend(strips), loc="outside lower right", ncols=3, frameon=False)
        figure.savefig(to, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _title(drawn: Drawn, column: str, left: int, clipped: int) -> str:
    more = f"; {left:,} keys more are not shown" if left else ""
    more += f"; clipped at ±{HIGHEST:g}: {counted(clipped, 'window')}" if clipped else ""
    return f"{drawn.answer.collection}: {column}, {drawn.known}{more}"


def _legend(strips: Sequence[Strip]) -> list[Any]:
    """What the colours and marks mean, of those that are there."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    closed = {one for strip in strips for one in strip.closed}
    entries: list[Any] = [Patch(color=_CLOSED, label="closed")] if True in closed else []
    entries += [Patch(color=_OPEN, label="open")] if False in closed else []
    if any(one for strip in strips for one in strip.corrected):
        entries.append(Line2D([], [], marker="D", color=_CORRECTED, linestyle="", markersize=4, label=_MARKED))
    return entries


def _draw(ax: Axes, strip: Strip, *, filled: bool) -> None:
    colours = [_CLOSED if closed else _OPEN for closed in strip.closed]
    spans = [end - start for start, end in zip(strip.starts, strip.ends, strict=True)]
    if filled:
        ax.bar(strip.starts, strip.values, spans, align="edge", color=colours, edgecolor="white", linewidth=0.4)
    else:
        # Windows that overlap at one height are distinguished by their starts.
        ax.hlines(strip.values, strip.starts, strip.ends, colors=colours, linewidth=1.2, alpha=0.7)
        ax.scatter(strip.starts, strip.values, marker="|", s=18, linewidth=0.9, color=colours)
    marked = [at for at, corrected in enumerate(strip.corrected) if corrected]
    if marked:
        middles = [strip.starts[at] + spans[at] / 2 for at in marked]
        heights = [strip.values[at] for at in marked]
        ax.scatter(middles, heights, marker="D", s=16, color=_CORRECTED, zorder=3)
    ax.set_ylabel(strip.label, rotation=0, ha="right", va="center", parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)

"""Windows drawn: what the file says, the same bytes for the same windows, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from tidemark.api.picture import MOST_WINDOWS, Drawn, draw
from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.pure
HOUR, INT = 3_600_000_000, pa.int64()


class AnswerRows:
    """The rows of an answer, as few as a picture needs."""

    collection = "delays"

    def __init__(self, *rows: tuple[str | None, int, float, bool, int], of: pa.DataType) -> None:
        names = ("origin", "window_start", "window_end", "n", "_closed", "_revision")
        columns = zip(*((o, start, start + HOUR, n, closed, rev) for o, start, n, closed, rev in rows), strict=True)
        table = pa.table(dict(zip(names, map(list, columns), strict=True))) if rows else pa.table({"n": [1]})
        for name in names[1:3] if rows else ():
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table[name].cast(of))
        self.schema, self.batches = table.schema, table.to_batches() if rows else []

    def __iter__(self) -> Any:
        return iter(self.batches)


def drawn(*rows: tuple[str | None, int, float, bool, int], kind: WindowKind | None = None, of: Any = INT) -> Drawn:
    windows = Windows(("origin",), "at", kind or Tumbling(HOUR), (Aggregate("n", Function.COUNT),))
    return Drawn(AnswerRows(*rows, of=of), windows, "as known at noon")  # type: ignore[arg-type]


ROWS = (("EWR", 0, 3, True, 0), ("EWR", HOUR, 4, True, 2), ("JFK", HOUR, 5, False, 0))


@pytest.mark.parametrize("kind", [Tumbling(HOUR), Sliding(HOUR)])
@pytest.mark.parametrize("of", [pa.int64(), pa.timestamp("us", "UTC")])
def test_a_picture_says_which_windows_it_shows_and_marks_corrected_ones(
    tmp_path: Path, kind: WindowKind, of: pa.DataType
) -> None:
    one, other = (str(tmp_path / name) for name in ("a.svg", "b.svg"))
    assert draw(drawn(*ROWS, kind=kind, of=of), one) == draw(drawn(*ROWS, kind=kind, of=of), other) == 3
    said = Path(one).read_text()
    for part in ("EWR", "JFK", "delays: n, as known at noon", "corrected after it was there", ">closed<", ">open<"):
        assert part in said
    assert said == Path(other).read_text()
    draw(drawn(("EWR", 0, 3, True, 0), kind=kind, of=of), one)
    assert "corrected" not in Path(one).read_text()


@pytest.mark.parametrize(
    ("values", "clipped"),
    [
        *(((1.7e308,), "1 window"), ((-1.7e308, 1.7e308, 3.0), "2 windows"), ((-1.7e308, 1.0, 2.0), "1 window")),
        *(((1e300, -1e300), ""), ((5e-324, 0.0), ""), ((1e-310, -1e-310), ""), ((float("inf"), 1.0), "")),
    ],
)
def test_values_as_large_and_as_small_as_doubles_are_drawn_and_what_is_clipped_is_said(
    tmp_path: Path, values: tuple[float, ...], clipped: str
) -> None:
    path = tmp_path / "a.svg"
    rows = [("EWR", at * HOUR, value, True, at % 2) for at, value in enumerate(values)]
    assert draw(drawn(*rows), str(path)) == len(values)
    said = path.read_text()
    assert (f"clipped at ±1e+300: {clipped}" in said) if clipped else ("clipped" not in said)
    assert "nan" not in said
    assert not re.search(r"\binf\b", said)


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "a.svg")
    for asked, to, value, words in (
        (drawn(*ROWS), str(tmp_path / "a.txt"), None, "svg"),
        (drawn(*ROWS), path, "origin", "origin is no number of delays"),
        (drawn(*ROWS), path, "nope", "one of n"),
        (drawn(), path, None, "has no windows to draw, as known at noon"),
        (drawn(*[("EWR", at, 1, True, 0) for at in range(MOST_WINDOWS + 1)]), path, None, "more than 20,000 windows"),
    ):
        with pytest.raises(InvalidUsage, match=words):
            draw(asked, to, value)
    assert list(tmp_path.iterdir()) == []


FAR = 253_402_297_200_000_000
"""The last hour of the year 9999: it ends in none that a calendar has."""
YEAR_1 = -62_135_596_800_000_000


@pytest.mark.parametrize("start", [FAR, FAR - HOUR, YEAR_1, -(2**62)])
def test_windows_at_the_ends_of_the_calendar_are_refused_in_a_line(tmp_path: Path, start: int) -> None:
    near = ("EWR", 0, 3, True, 0)
    with pytest.raises(InvalidUsage, match='too far to be drawn; draw others: --where "window_start >= '):
        draw(drawn(near, ("EWR", start, 1, True, 0), of=pa.timestamp("us", "UTC")), str(tmp_path / "a.svg"))
    many_years = (("EWR", -30_000_000_000_000_000, 1, True, 0), ("EWR", 221_000_000_000_000_000, 1, True, 0))
    assert draw(drawn(*many_years, of=pa.timestamp("us", "UTC")), str(tmp_path / "a.svg")) == 2
    assert draw(drawn(near, ("EWR", start, 1, True, 0), of=INT), str(tmp_path / "a.svg")) == 2


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("a\x01b\nc", "a\\x01b\\nc"),
        ("x" + "y" * 9_000, "x" + "y" * 26 + "…<"),
        ("\u202eright to left", "\\u202eright to left"),
        ("</text><script>", "&lt;/text&gt;&lt;script&gt;"),
    ],
)
def test_whatever_a_key_holds_the_file_can_be_opened_and_has_room_for_windows(
    tmp_path: Path, recwarn: pytest.WarningsRecorder, key: str, said: str
) -> None:
    """A control character is none that XML may hold; a label as wide as the picture leaves nothing for the bars."""
    path = tmp_path / "a.svg"
    draw(drawn((key, 0, 3, True, 0)), str(path))
    assert ElementTree.parse(path) is not None
    assert said in path.read_text()
    assert not [str(one.message) for one in recwarn if "collapsed" in str(one.message)]

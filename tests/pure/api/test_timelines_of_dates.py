"""A timeline of dates answers as one that nothing is recorded of, also once it became a timestamp, and opens less."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemark
from tests.pure.api.made import Made
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Collection, Column, ColumnType, Envelope
from tidemark.model.layout import Layout
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.pure
DATE, TIMESTAMP = Column("day", ColumnType.DATE), Column("day", ColumnType.TIMESTAMP)
OTHER = Column("w", ColumnType.INT)
DAYS = [
    [None, "0001-01-01", "1969-12-31"],
    ["1970-01-01", "1970-01-02", None],
    ["2013-01-02", "9999-12-31"],
]
ASKED = ["0001-01-01", "1969-12-31", "1970-01-01", "2013-01-02", "9999-12-30", "9999-12-31"]


def answers(made: Made, on: str) -> list[Any]:
    """What is said at each of some days, and between them, by key, by row and of a table of times."""
    opened = tidemark.open(made.root, "tides")
    table = pa.table({"k": [1] * len(ASKED), "at": [on_type(day, on) for day in ASKED]})
    rows: list[Any] = [opened.latest_at("day", at=table, at_column="at", columns=["w"]).to_arrow().to_pylist()]
    for day in ASKED:
        rows.append(opened.latest_at("day", day).to_arrow().to_pylist())
        rows.append(opened.latest_at("day", day, {"k": 1}, within="7d", each=True).to_arrow().to_pylist())
        rows.append(opened.as_of(where=f"day > '{day}'").to_arrow().to_pylist())
        rows.extend(opened.range("day", day, upper).to_arrow().to_pylist() for upper in [None, *ASKED])
    return rows


def on_type(day: str, on: str) -> Any:
    at = date.fromisoformat(day)
    return at if on == "date" else datetime(at.year, at.month, at.day, tzinfo=UTC)


def declared(made: Made, **changes: Any) -> None:
    changed: Collection = replace(made.world.collection, **changes)
    made.world.run(lambda job: declare_collection(job, changed))


def lived(folder: Path, timelines: tuple[str, ...]) -> Made:
    made = Made(folder, Envelope.APPEND, value=(OTHER, DATE), timelines=timelines)
    for day, dates in enumerate(DAYS):
        rows = [{"k": at % 2, "w": at, "day": text, "t": 10 * day, "e": 10 * day} for at, text in enumerate(dates)]
        (made.drained if day == 1 else made.sealed)(day, rows)
    return made


@pytest.mark.parametrize("trees", [False, True])
def test_a_recorded_timeline_of_dates_answers_as_any(
    tmp_path: Path, trees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("SMALL", "WHOLE", "LEAF") if trees else ():
        monkeypatch.setattr(parts_table, limit, 1)
    recorded, bare = lived(tmp_path / "recorded", ("day",)), lived(tmp_path / "bare", ())
    assert answers(recorded, "date") == answers(bare, "date")
    for made in (recorded, bare):
        declared(made, value=(OTHER, TIMESTAMP))
        rows = [{"k": 1, "w": 7, "day": "1970-01-01T12:00:00Z", "t": 30, "e": 30}]
        made.drained(3, rows)
        made.compacted(3)
    assert answers(recorded, "timestamp") == answers(bare, "timestamp")
    assert any(rows for rows in answers(recorded, "timestamp")[1:])


def test_parts_of_other_days_are_not_opened(tmp_path: Path) -> None:
    made = lived(tmp_path, ("day",))
    opened = tidemark.open(made.root, "tides")
    explained = opened.range("day", "2013-01-01", "2013-12-31").explain()
    assert (explained.parts_opened, explained.parts) == (1, 2)


def test_a_timeline_of_dates_can_be_declared_later_and_is_no_layout(tmp_path: Path) -> None:
    made = lived(tmp_path, ())
    declared(made, timelines=("day",))
    made.sealed(3, [{"k": 1, "w": 7, "day": "2014-01-01", "t": 30, "e": 30}])
    assert len(tidemark.open(made.root, "tides").range("day", "2013-01-01", None).to_arrow()) == 3
    with pytest.raises(InvalidUsage, match="layout by day, which is a date; name a timestamp"):
        replace(made.world.collection, timelines=("day",), layout=Layout("day", 1))

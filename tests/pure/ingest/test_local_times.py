"""Times by the clock of a place against Python's `zoneinfo`, and texts of a format against its `strptime`."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pure.ingest.landed import decoded
from tests.pure.ingest.test_columns_in_file import declared
from tidemark.arrow.decode.local_times import formatted
from tidemark.arrow.decode.source import BadFile
from tidemark.arrow.decode.strict import Misfit
from tidemark.model.collection import ColumnType

pytestmark = pytest.mark.pure

ZONES = {
    "America/New_York": 2024,
    "Australia/Lord_Howe": 2024,
    "Asia/Kathmandu": 1986,
    "Africa/Cairo": 2024,
    "America/Santiago": 2024,
}
"""Zones, each with a year in which its clocks change: by an hour, by half of one, by a quarter, at midnight."""
STEP = timedelta(minutes=5)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock shows
JUNE = EPOCH.replace(year=2024, month=6)


@lru_cache
def changes(zone: str) -> list[datetime]:
    """The hours of UTC in whose course clocks change."""
    first = datetime(ZONES[zone], 1, 1, tzinfo=UTC) - timedelta(days=1)
    hours = [first + timedelta(hours=at) for at in range(366 * 24)]
    ahead = [at.astimezone(ZoneInfo(zone)).utcoffset() for at in hours]
    return [at for at, before, after in zip(hours, ahead, ahead[1:], strict=False) if before != after]


def clocks(zone: str) -> Iterator[datetime]:
    """What clocks may show around each change, and elsewhere; with microseconds at times."""
    for at in changes(zone):
        around = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None, minute=0) - timedelta(hours=4)
        yield from (around + STEP * step for step in range(96))
    yield from (
        JUNE.replace(year=year, minute=30, microsecond=1) for year in (1, 1800, 1969, 1970, 2024, 2037, 2400, 9998)
    )
    draw = random.Random(zone)
    yield from (EPOCH.replace(1900) + timedelta(microseconds=draw.randrange(2**52)) for _ in range(200))


def expected(clock: datetime, zone: str, ambiguous: str | None) -> datetime | None:
    """The instant at which a clock shows a time; None where nobody says which of two, or of none."""
    both = {clock.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)}
    shows = [at for at in both if at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == clock]
    if len(shows) == 1:
        return shows[0]
    return None if ambiguous is None else min(both) if ambiguous == "earlier" else max(both)


def land(path: Path, form: str, values: list[Any]) -> Path:
    """A file with a column v, of clocks as texts, numbers or timestamps."""
    if form == "parquet":
        pq.write_table(pa.table({"k": list(range(len(values))), "v": values}), path)
    else:
        rows = [{"k": at, "v": value} for at, value in enumerate(values)]
        texts = [json.dumps(row) if form == "jsonl" else f"{row['k']},{row['v']}" for row in rows]
        path.write_text("\n".join(texts if form == "jsonl" else ["k,v", *texts]) + "\n")
    return path


def micros(clock: datetime) -> int:
    return (clock - EPOCH) // timedelta(microseconds=1)


WRITTEN: list[tuple[str, str, Any]] = [
    ("csv", "", datetime.isoformat),
    ("csv", "%d/%m/%Y %H:%M:%S.%f", lambda clock: f"{clock:%d/%m/}{clock.year:04d}{clock: %H:%M:%S.%f}"),
    ("jsonl", "", datetime.isoformat),
    ("jsonl", "us", micros),
    ("parquet", "", lambda clock: clock),
    ("parquet", "us", micros),
]


def column_of(zone: str, how: str, ambiguous: str | None) -> dict[str, Any]:
    said = {"unit": how} if how == "us" else {"format": how} if how else {}
    return {"type": "timestamp", "timezone": zone, **said, **({"ambiguous": ambiguous} if ambiguous else {})}


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_of_a_place_are_instants(tmp_path: Path, zone: str) -> None:
    every = list(clocks(zone))
    once = [clock for clock in every if expected(clock, zone, None)]
    assert len(changes(zone)) == (1 if zone == "Asia/Kathmandu" else 2)
    assert len(once) < len(every), "nothing is twice, or never"
    for form, how, write in WRITTEN:
        for choice, listed in ((None, once), ("earlier", every), ("later", every)):
            path = land(tmp_path / "file", form, [write(clock) for clock in listed])
            read = decoded(path, declared(tmp_path, form, {"v": column_of(zone, how, choice)}))
            assert read["v"].to_pylist() == [expected(clock, zone, choice) for clock in listed], (form, how, choice)


@pytest.mark.parametrize("zone", ZONES)
def test_what_clocks_show_twice_or_never_is_refused_with_its_place(tmp_path: Path, zone: str) -> None:
    doubtful = [clock for clock in clocks(zone) if not expected(clock, zone, None)]
    for form, how, write in WRITTEN:
        collection = declared(tmp_path, form, {"v": column_of(zone, how, None)})
        for clock in doubtful[:1] + doubtful[-1:]:
            path = land(tmp_path / "file", form, [write(JUNE), write(clock)])
            with pytest.raises(BadFile) as refusal:
                decoded(path, collection)
            assert f"2: column v is declared timestamp and holds {clock.isoformat()}, which is " in (
                refusal.value.reason.replace("line 3", "line 2")
            )
            assert refusal.value.reason.endswith(
                f"in {zone}, as clocks change; to take one write ambiguous: earlier, or later"
            )


def test_what_has_an_offset_is_an_instant_already(tmp_path: Path) -> None:
    noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
    texts = ["2024-07-01T12:00:00Z", "2024-07-01 14:00:00+02:00", "2024-07-01T08:00", "2024-07-01 07:00:00-05", None]
    collection = declared(tmp_path, "jsonl", {"v": column_of("America/New_York", "", None)})
    assert decoded(land(tmp_path / "file", "jsonl", texts), collection)["v"].to_pylist() == [noon] * 4 + [None]
    collection = declared(tmp_path, "parquet", {"v": column_of("America/New_York", "", None)})
    stamps = pa.array([noon], pa.timestamp("us", "UTC"))
    assert decoded(land(tmp_path / "file", "parquet", stamps), collection)["v"].to_pylist() == [noon]


@pytest.mark.parametrize(("beyond", "result"), [("null", None), ("clip", 9999), (None, "beyond the years")])
def test_far_times_of_a_clock_are_what_beyond_says(tmp_path: Path, beyond: str | None, result: Any) -> None:
    column = column_of("America/New_York", "", None) | ({"beyond": beyond} if beyond else {})
    for form, values in (("jsonl", ["infinity"]), ("parquet", pa.array([2**62], pa.timestamp("us")))):
        path, collection = land(tmp_path / "file", form, values), declared(tmp_path, form, {"v": column})
        if isinstance(result, str):
            with pytest.raises(BadFile, match="beyond: null, or clip, of the column"):
                decoded(path, collection)
        else:
            read = decoded(path, collection)["v"].cast(pa.int64())[0].as_py()
            assert read == (result and micros(EPOCH.replace(9999, 12, 31, 23, 59, 59, 999999)))


FORMATS = [
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d.%m.%Y %H:%M",
    "%Y%m%d",
    "%Y%m%d%H%M%S",
    "%Y%j",
    "%d %b %Y",
    "%B %d, %Y %I:%M:%S %p",
    "%a, %d %b %Y %H:%M:%S %z",
    "%A the %d. of %B %Y",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%H.%M on %d-%m-%y",
    "100%% (%Y) [%m|%d]",
]


def by_python(text: str, form: str) -> datetime | None:
    """The instant that Python reads, an offset that is none taken for UTC's."""
    try:
        at = datetime.strptime(text, form)  # noqa: DTZ007 - some formats have an offset
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def by_us(text: str, form: str, declared: ColumnType = ColumnType.TIMESTAMP) -> Any:
    try:
        return formatted(pa.array(["2024-01-01", text][1:]), declared, form)[0].as_py()
    except Misfit:
        return None


@pytest.mark.parametrize("form", FORMATS)
def test_texts_of_a_format_are_what_python_reads(form: str) -> None:
    draw = random.Random(form)
    texts, taken = [], 0
    for _ in range(40):
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw.randrange(2**51))
        text = at.strftime(form)
        texts += [text, text.upper(), text.replace("0", "", 1)]
        at_letter = draw.randrange(len(text))
        texts.append(text[:at_letter] + draw.choice("0123456789:/xZ") + text[at_letter + 1 :])
    for text in texts:
        result = by_us(text, form)
        # Python takes any weekday, offsets of seconds, and fewer digits where numbers are next to each other.
        is_stricter = "%a" in form.lower() or "%z" in form or "%Y%" in form
        assert result == by_python(text, form) or (result is None and is_stricter), text
        taken += result is not None
    assert taken >= 40
    many = formatted(pa.array([None, *(text for text in texts if by_us(text, form)), None]), ColumnType.TIMESTAMP, form)
    assert many.null_count == 2


def test_what_is_no_text_of_a_format_is_refused_by_its_place(tmp_path: Path) -> None:
    collection = declared(tmp_path, "csv", {"v": {"type": "date", "format": "%d/%m/%Y"}})
    assert decoded(land(tmp_path / "file", "csv", ["29/02/2024", "", "1/2/2024"]), collection)["v"].to_pylist() == [
        date(2024, 2, 29),
        None,
        date(2024, 2, 1),
    ]
    for wrong in ("29/02/2023", "2024-02-29", "31/04/2024", "0/1/2024", "1/13/2024", " 1/1/2024", "1/1/0000"):
        with pytest.raises(BadFile) as refusal:
            decoded(land(tmp_path / "file", "csv", ["29/02/2024", wrong]), collection)
        assert refusal.value.reason == f"line 3: column v is declared date (format: %d/%m/%Y) and holds '{wrong}'"

"""Eight small stories about late rows, deletes and repeats, given to every engine (what each should answer is known);
and the changes of each ingest of a short life, asked for after its compactions.

A story is a list of days of rows `(value, event time, deleted)` of one key. Right is what was true by event time: the
newest row that happened decides, whenever it arrived; a row that repeats the current value changes nothing. Peers get
them twice: rows as they came, and with each day's rows of a key reduced to the newest before.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.feed import DAY, START, code_of, fingerprint_of
from benchmarks.peers.engines import opened
from benchmarks.workload import CurrentRows, Workload, minus
from tidemark.model.collection import Envelope

Row = tuple[int, int, bool]
BASE_ID, ID = 1, 2
LIFE = Workload(Envelope.UPSERT, base=20_000, ingests=20, rows=500)
COMPACTED_EVERY = 5
FEED = f"changes of each of {LIFE.ingests} ingests, compacted every {COMPACTED_EVERY}"


@dataclass(frozen=True)
class Story:
    """`days` after a base that holds another key; `value` is what must be current (None: nothing), and if `quiet`, the
    last day changes nothing."""

    name: str
    days: tuple[tuple[Row, ...], ...]
    value: int | None
    quiet: bool = False


def up(value: int, at: int) -> Row:
    return value, at, False


def gone(at: int) -> Row:
    return 0, at, True


STORIES = (
    Story("an older update arrives late", ((up(1, 10),), (up(3, 30),), (up(2, 20),)), 3, quiet=True),
    Story("two updates of a key in one batch", ((up(1, 10),), (up(2, 20), up(3, 30))), 3),
    Story("two inserts of a new key in one batch", ((up(1, 10), up(2, 20)),), 2),
    Story("a late update after a delete", ((up(1, 10),), (gone(30),), (up(2, 20),)), None, quiet=True),
    Story("a delete arrives before its insert", ((gone(20),), (up(1, 10),)), None, quiet=True),
    Story("a late delete older than the row", ((up(1, 10),), (up(3, 30),), (gone(20),)), 3, quiet=True),
    Story("the same batch again", ((up(1, 10),), (up(2, 20),), (up(2, 20),)), 2, quiet=True),
    Story("newer but equal value", ((up(1, 10),), (up(1, 20),)), 1, quiet=True),
)


def cases(engines: list[str]) -> list[dict[str, str]]:
    """For each story, what each engine makes of it: right, or what is wrong."""
    verdicts = []
    for story in STORIES:
        row = {"case": story.name}
        for name in engines:
            if name == "tidemark":
                row[name] = _verdict(name, story)
            else:
                row[f"{name}, rows as they came"] = _verdict(name, story, deduplicate=False)
                row[f"{name}, newest of each key"] = _verdict(name, story, deduplicate=True)
        verdicts.append(row)
    every = {name: _every_change(name) for name in engines}
    columns = [column for column in verdicts[0] if column != "case"]
    # Days repeat keys, so no peer gets these rows as they came.
    verdicts.append({"case": FEED} | {c: "-" if c.endswith("came") else every[c.partition(",")[0]] for c in columns})
    return verdicts


def _every_change(name: str) -> str:
    """The changes of each ingest of a short life with compactions, asked for at its end."""
    current = CurrentRows(LIFE.feed)
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        engine, expected = opened(name, Path(folder, "table")), []
        for day in range(LIFE.ingests + 1):
            rows = LIFE.day(day)
            expected.append(current.after(rows))
            engine.ingest(day, rows.table(LIFE.envelope))
            if day and day % COMPACTED_EVERY == 0:
                engine.maintain(day)
        wrong = sum(
            fingerprint_of(engine.changes(day - 1, day), "multiplicity") != minus(expected[day], expected[day - 1])
            for day in range(1, LIFE.ingests + 1)
        )
    return f"**wrong** for {wrong} of {LIFE.ingests}" if wrong else "right"


def _verdict(name: str, story: Story, **options: bool) -> str:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        engine = opened(name, Path(folder, "table"), **options)
        engine.ingest(0, _rows(0, BASE_ID, (up(0, 0),)))
        try:
            for day, rows in enumerate(story.days, start=1):
                engine.ingest(day, _rows(day, ID, rows))
            last = len(story.days)
            current = engine.point(ID, code_of(ID)).to_pylist()
            noise = _noise(engine.changes(last - 1, last).to_pylist()) if story.quiet else ""
        except Exception as error:  # an engine that refuses is a result
            return f"error: {str(error).splitlines()[0].rpartition('error: ')[2][:60]}"
    return _wrong(story, current) or noise or "right"


def _wrong(story: Story, current: list[dict[str, Any]]) -> str:
    values = sorted(row["amount"] for row in current for _ in range(row["multiplicity"]))
    wanted = [] if story.value is None else [story.value]
    if values == wanted:
        return ""
    if not wanted:
        return "**wrong**: the row is there"
    return f"**wrong**: {len(values)} rows" if len(values) != 1 else f"**wrong**: holds {values[0]}, not {wanted[0]}"


def _noise(changes: list[dict[str, Any]]) -> str:
    """Rows of changes where nothing has changed."""
    return f"right, but {len(changes)} changes that change nothing" if changes else ""


def _rows(day: int, id: int, rows: tuple[Row, ...]) -> pa.Table:
    """A change file's rows: event times count seconds from the first day on, reported on their own day in order."""
    instant = pa.timestamp("us", "UTC")
    number = len(rows)
    return pa.table(
        {
            "id": pa.array([id] * number, pa.int64()),
            "code": pa.array([code_of(id)] * number),
            "amount": pa.array([value for value, _, _ in rows], pa.int64()),
            "ratio": pa.array([0.5] * number),
            "label": pa.array(["label-0001"] * number),
            "happened_at": pa.array([START + at * 1_000_000 for _, at, _ in rows]).cast(instant),
            "reported_at": pa.array([START + day * DAY + place for place in range(number)]).cast(instant),
            "deleted": pa.array([deleted for _, _, deleted in rows]),
        }
    )

"""Columns that are added, widened, renamed and dropped between ingests, drains and compactions: every read answers as
if all rows had come under today's declaration. The oracle replays them; it knows a column by its number here."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from simulation.oracle import Oracle, Row
from support.budget import budget
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of, changes
from tidemark.arrow.kernels.inspect import inspect_part
from tidemark.arrow.rows.schema import plain_scalars, unsealed_schema, updates_schema
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Envelope, ValueType
from tidemark.plan.tasks import InspectTask
from tidemark.storage.sidecars import parts_table

BOOL, INT, FLOAT, STRING, DATE, TIMESTAMP, BYTES, JSON = ColumnType
MONEY, MORE = DecimalType(12, 2), DecimalType(38, 4)
CELLS: dict[ValueType, list[Any]] = {
    BOOL: [None, False, True],
    INT: [None, 0, 1, -5, 2**53 + 1],
    FLOAT: [None, 0.5, 1.0, -5.0],
    STRING: [None, "a", "b"],
    DATE: [None, 0, 15_000],
    TIMESTAMP: [None, 0, 86_400_000_000 * 15_000, 1],
    BYTES: [None, "", "ff"],
    JSON: [None, "[]", '{"a":1}'],
    MONEY: [None, Decimal("0.10"), Decimal(-5)],
    MORE: [None, Decimal("0.0001")],
}
WIDER = {BOOL: [INT, FLOAT, MONEY], INT: [FLOAT, MONEY, MORE], DATE: [TIMESTAMP], MONEY: [MORE]}
NAMES = ["a", "b", "c", "f"]


@dataclass(frozen=True)
class Known:
    """A column as the test knows it: its number here, its names and types of today."""

    number: int
    name: str
    type: ValueType
    dropped: bool = False


@dataclass
class Record:
    """The columns there ever were, and of each row the cells it came with, each with the type it had then."""

    columns: list[Known] = field(default_factory=list)
    cells: list[dict[int, tuple[ValueType, Any]]] = field(default_factory=list)

    @property
    def live(self) -> list[Known]:
        return [column for column in self.columns if not column.dropped]

    def value(self, row: int) -> tuple[Any, ...]:
        """A row's value under today's columns. Python takes True, 1 and 1.0 for equal, as a widening does."""
        cells = self.cells[row]
        return tuple(_wide(*cells.get(column.number, (column.type, None)), column.type) for column in self.live)


def _wide(of: ValueType, cell: Any, wanted: ValueType) -> Any:
    return cell * 86_400_000_000 if (of, wanted) == (DATE, TIMESTAMP) and cell is not None else cell


def _json(of: ValueType, cell: Any) -> Any:
    if cell is not None and of in (BYTES, JSON, MONEY, MORE):
        return b64encode(bytes.fromhex(cell)).decode() if of is BYTES else json.loads(cell) if of is JSON else str(cell)
    if cell is None or of not in (DATE, TIMESTAMP):
        return cell
    day, micros = divmod(cell, 86_400_000_000) if of is TIMESTAMP else (cell, 0)
    date = {0: "1970-01-01", 15_000: "2011-01-26"}[day]
    return date if of is DATE else f"{date}T00:00:00.{micros:06}Z"


class Evolving:
    """A collection whose columns change, and the oracle, which gets every row."""

    def __init__(self, folder: str, envelope: Envelope, data: st.DataObject) -> None:
        self.data, self.folder, self.numbers = data, folder, count(1)
        self.record = Record([Known(next(self.numbers), "a", data.draw(st.sampled_from(list(CELLS))))])
        self.envelope = envelope
        value = (Column("a", self.record.columns[0].type),)
        self.asked = collection(envelope, value=value, live_batches=2)
        self.world = World(Path(folder), self.asked)
        self.oracle = Oracle(keyed=envelope is Envelope.UPSERT, two_times=True)
        self.oracle.allow("reemit", None)
        self.days = 0
        self.snapshots: list[list[tuple[int, int]]] = []

    # What happens to it.

    def ingested(self) -> None:
        """A day's file lands and is ingested; the day is sealed."""
        drawn = self.data.draw(
            st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(-15, 0)), max_size=4)
        )
        if self.envelope is Envelope.SNAPSHOT and not drawn:
            drawn = [(0, 0, 0)]
        landed, rows, snapshot = [], [], []
        for at, (key, offset, lag) in enumerate(drawn):
            cells = {c.number: (c.type, self.data.draw(st.sampled_from(CELLS[c.type]))) for c in self.record.live}
            self.record.cells.append(cells)
            row = len(self.record.cells) - 1
            time = self.days * DAY + offset
            happened = max(0, time + lag)
            gone, diff = (
                self.data.draw(st.sampled_from([False, False, True])),
                self.data.draw(st.sampled_from([1, 2, -1])),
            )
            landed.append(
                {c.name: _json(*cells[c.number]) for c in self.record.live}
                | {"k": key, "t": time, "e": happened, "o": at, "gone": gone, "d": diff}
            )
            deleted = gone and self.envelope is Envelope.UPSERT
            sign = diff if self.envelope is Envelope.UPDATES else 1
            rows.append(Row(key, None if deleted else row, time, happened, (at, self.days), sign))
            snapshot.append((key, row))
        self.world.land(self.days, "file", landed)
        self.oracle.rows += self.oracle.judge(rows, self.days * DAY)
        self.snapshots.append(snapshot)
        self.world.run(lambda job: ingest(job, interval(self.days), landing_root=self.folder))
        self.world.run(lambda job: seal(job, interval(self.days)))
        self.days += 1
        self.oracle.complete = self.oracle.seal = self.days * DAY

    def moved(self) -> None:
        """A day as it goes, up to the trace."""
        self.ingested()
        self.world.run(lambda job: drain(job, interval(self.days - 1)))

    def compacted(self) -> None:
        schemas = {part.schema for part in self.parts()}
        if self.world.run(lambda job: compact(job, interval(self.days - 1)))["merges"]:
            event(f"compacted parts of {len(schemas)} schemas")

    def evolved(self) -> None:
        """Some of the columns are changed at once, and listed in any order."""
        columns, renames = [], []
        for column in self.record.columns:
            kind = "keep" if column.dropped else self.data.draw(st.sampled_from(["keep", "drop", "rename", "widen"]))
            if kind == "drop":
                column = replace(column, dropped=True)
            free = [n for n in NAMES if n not in [c.name for c in (*self.record.columns, *columns)]]
            if kind == "rename" and free:
                name = self.data.draw(st.sampled_from(free))
                renames.append((column.name, name))
                column = replace(column, name=name)
            if kind == "widen" and column.type in WIDER:
                column = replace(column, type=self.data.draw(st.sampled_from(WIDER[column.type])))
            columns.append(column)
        free = [n for n in NAMES if n not in [c.name for c in (*self.record.columns, *columns)]]
        for name in self.data.draw(st.lists(st.sampled_from(free), unique=True, max_size=2)) if free else ():
            of = self.data.draw(st.sampled_from(list(CELLS)))
            columns.append(Known(next(self.numbers), name, of))
        self.redefine(columns, renames)

    def redefine(self, columns: list[Known], renames: list[tuple[str, str]]) -> None:
        listed = self.data.draw(st.permutations([c for c in columns if not c.dropped]))
        asked = replace(
            self.asked, value=tuple(Column(c.name, c.type) for c in listed), renames=tuple(renames), dropped=()
        )
        current, new = self.record.columns, [c for c in listed if c not in self.record.columns and c.number > self.last]
        begins = self.world.state.has_no_data
        if refused := self.refused(asked):
            narrow = [c for c, w in zip(current, columns, strict=False) if c.type is INT and w.type in (FLOAT, MONEY)]
            large = [cells for cells in self.record.cells for c in narrow if cells.get(c.number) == (INT, 2**53 + 1)]
            assert large, refused
            event("refused: an int that the wider type does not hold")
            return
        # New columns come behind all others, in the order listed; without rows the file alone decides.
        self.record.columns = list(listed) if begins else [c for c in columns if c not in new] + new
        event("columns changed" if columns != current else "nothing changed")
        assert declare_collection(self.world.job(), asked)["outcome"] == "nothing to do"

    def refused(self, asked: Collection) -> str:
        try:
            declare_collection(self.world.job(), asked)
        except InvalidUsage as error:
            return str(error)
        return ""

    @property
    def last(self) -> int:
        return max((column.number for column in self.record.columns), default=0)

    # What must hold.

    def check_answers(self) -> None:
        state, store = self.world.state, self.world.truth
        assert [(c.name, c.type) for c in state.collection.value] == [(c.name, c.type) for c in self.record.live]
        if state.seal:
            for time in {state.seal - 1, self.data.draw(st.integers(0, state.seal - 1))}:
                found, expected = self.multiplicities(as_of(store, state, time=time)), self.expected(time)
                assert found == expected, (time, found - expected, expected - found)
            if self.envelope is not Envelope.SNAPSHOT:
                assert self.changed(changes(store, state, after=-1)) == self.replayed().changes(-1, state.seal - 1)

    def check_parts(self) -> None:
        """Each verifies as it was written, and is found to have the columns it should have."""
        state, store = self.world.state, self.world.truth
        report = verify(self.world.job(), data=True)
        assert report.sound, report.findings
        event(f"parts of {len({part.schema for part in self.parts()})} schemas")
        for batch in state.batches:
            unsealed = batch in (*state.unsealed, *state.remembered)  # facts that were merged stay facts
            schema = (unsealed_schema if unsealed else updates_schema)(state.collection)
            for part in parts_table.parts_of(store, [batch]):
                task = InspectTask(state.collection, part, unsealed and state.collection.kind.facts)
                assert inspect_part(store, task).columns == tuple(schema.names)

    def replayed(self) -> Oracle:
        today = Oracle(keyed=self.oracle.keyed, two_times=True)
        value = self.record.value
        today.rows = [r if r.value is None else r._replace(value=value(r.value)) for r in self.oracle.rows]
        return today

    def expected(self, time: int) -> Counter[Any]:
        if self.envelope is not Envelope.SNAPSHOT:
            return self.replayed().as_of(time, 2**62)
        snapshots = [snapshot for day, snapshot in enumerate(self.snapshots) if (day + 1) * DAY - 1 <= time]
        return Counter((key, self.record.value(row)) for key, row in snapshots[-1]) if snapshots else Counter()

    def multiplicities(self, table: Any) -> Counter[Any]:
        rows = _rows(table)
        assert len({row[:-1] for row in rows}) == len(rows), "consolidated"
        return Counter({(row[0], row[1:-1]): row[-1] for row in rows})

    def changed(self, table: Any) -> Counter[Any]:
        width = 1 + len(self.record.live)
        rows = _rows(table)
        return Counter({(r[0], r[1:width], r[width + 1], r[width + 3]): r[-1] for r in rows})

    def parts(self) -> list[Any]:
        return list(parts_table.parts_of(self.world.truth, self.world.state.batches))


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(_plain(column) for column in table.columns), strict=True))


def _plain(column: Any) -> list[Any]:
    """Decimals as numbers: whatever their digits are."""
    return column.to_pylist() if pa.types.is_decimal(column.type) else plain_scalars(column)


ENVELOPES = [Envelope.UPSERT, Envelope.UPSERT, Envelope.APPEND, Envelope.UPDATES, Envelope.SNAPSHOT]
STEPS = ["ingested", "moved", "moved", "evolved", "evolved"]
END = ["moved", "moved", "evolved", "compacted", "evolved", "moved"]
"""Three batches with data are more than are to be, so that a compaction is due."""


@settings(deadline=None, max_examples=budget(ci=8, deep=30))
@given(st.data(), st.sampled_from(ENVELOPES))
def test_reads_answer_as_if_all_rows_had_come_under_todays_columns(data: st.DataObject, envelope: Envelope):
    with TemporaryDirectory() as folder:
        evolving = Evolving(folder, envelope, data)
        evolving.moved()
        for step in [*data.draw(st.lists(st.sampled_from(STEPS), max_size=6)), *END]:
            getattr(evolving, step)()
            evolving.check_answers()
        evolving.check_parts()

"""A second reader, written from docs/format.md alone: it imports nothing of Tidemark's.

    SecondReader(Path("root/flights")).as_of(time)    # Counter of (key and value, by name) with their multiplicity

It reads whole files and computes in plain Python, so it is for small collections and for being read.
"""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EMPTY = 2**63 - 1
FORMAT = 4
"""The newest format that is read."""
State = dict[str, Any]
Row = dict[str, Any]
Item = tuple[tuple[str, Any], ...]
"""Key and value of a row: (column, value), in the order declared."""


class Unreadable(Exception):
    """The read was not promised."""


def document(path: Path) -> Any:
    """An object of JSON whose format is known. The number comes first, and nothing is decoded before it is; tables of
    parts of format 1 have none, and are lists."""
    data = path.read_bytes()
    number = re.match(rb'\s*\{\s*"format"\s*:\s*(\d+)', data)
    if number and int(number[1]) > FORMAT:
        raise Unreadable(f"format {int(number[1])}")
    content = json.loads(data)
    if isinstance(content, list):
        return {"format": 1, "parts": content}
    return _named_as_today(content) if content["format"] == 1 else content


NAMES_OF_FORMAT_1 = {
    "wanted": "requested_seal",
    "forgotten": "forgotten_below",
    "dump": "snapshot",
    "dumps": "snapshots",
    "vouched": "frontier_certificate",
}


def _named_as_today(record: dict[str, Any]) -> dict[str, Any]:
    """A version of format 1, its change and state with the names of today."""
    for holder in ("change", "checkpoint"):
        if record.get(holder):
            fields = {NAMES_OF_FORMAT_1.get(name, name): value for name, value in record[holder].items()}
            # The seal said both: that all was known, and that all had come.
            seal = fields.get("seal" if holder == "checkpoint" else "upper")
            record[holder] = fields if seal is None else {**fields, "complete_below": seal}
    return record


def newest_state(folder: Path) -> State:
    """The state at the newest version: a checkpoint, and the changes after it."""
    folders = [each for each in sorted((folder / "versions").iterdir()) if any(each.glob("*.json"))]
    newest = max(int(path.stem) for path in folders[-1].glob("*.json"))
    first = newest // 16 * 16
    state: State = {}
    for version in range(max(1, first), newest + 1):
        record = document(folder / f"versions/{version // 100:08d}/{version:012d}.json")
        if version == first:
            state = record["checkpoint"] or {}
        else:
            _fold(state, record["change"])
    return state


def _fold(state: State, change: dict[str, Any]) -> None:
    """The effects on what reads need; the rest of a state is for writers."""
    kind = change["kind"]
    if kind in ("created", "dropped", "restored"):
        state.clear()
        state |= change["state"] if kind == "restored" else {}
    if kind == "created":
        state |= {"complete_below": 0, "seal": 0, "since": 0, "forgotten_below": 0, "corrected_from": 0}
        state["told"] = {"runs": []}
        state |= {name: [] for name in ("rungs", "unsealed", "remembered", "trace", "quarantined", "snapshots")}
    if kind in ("created", "redefined"):
        before, now = reprocessed(state) if kind == "redefined" else 0, change["collection"]
        state["collection"] = now
        if reprocessed(state) > before and kind == "redefined":
            _begin_to_correct(state, before)
    elif kind == "ingested":
        state["unsealed"] += [change["batch"]] if change["batch"] else []
        state["snapshots"] += [change["snapshot"]] if change.get("snapshot") else []
    elif kind == "corrected":
        state["unsealed"] += [change["batch"]] if change["batch"] else []
        if change["previous"] is None:
            first = change.get("readable") or {"since": change["consumption"]["upper"] - 1, "rungs": []}
            state |= {"since": max(state["since"], first["since"]), "rungs": first["rungs"]}
        state["event_times_from"] = max(state.get("event_times_from", 0), change["event_times_from"])
    elif kind == "sealed":
        if change["upper"] > state["seal"] and change.get("at", 0):
            _committed(state, change["at"], change["upper"])
        state["seal"] = max(state["seal"], change["upper"])
        state["complete_below"] = max(state["complete_below"], change["complete_below"])
    elif kind == "drained":
        _put_ahead(state, change.get("opened", []), change.get("ahead", []))
        state["trace"].append(change["batch"])
        _evict(state)
    elif kind == "ahead_merged":
        _put_ahead(state, change["inputs"], change["batches"])
        _evict(state)
    elif kind == "compacted":
        _compact(state, change)
    elif kind == "quarantined":
        _move(state, change["batch"], "unsealed", "quarantined")
    elif kind == "released":
        _move(state, change["batch"], "quarantined", "unsealed")
    elif kind == "trimmed":
        state["unsealed"] = [change["batch"] if b["id"] == change["batch"]["id"] else b for b in state["unsealed"]]
        state["forgotten_below"] = max(state["forgotten_below"], change["horizon"])
    elif kind == "remembered":
        _remember(state, change)
    elif kind == "compaction_allowed":
        state |= {"since": change["since"], "rungs": change["rungs"]}
        floor = change["rungs"][-1]["lower"] if change["rungs"] else change["since"]
        commits = commit_times(state)
        while commits["runs"] and commits["runs"][0]["last"]["seal"] <= floor:
            del commits["runs"][0]
        while not commits["runs"] and commits["recent"] and commits["recent"][0]["seal"] <= floor:
            del commits["recent"][0]
    elif kind == "commit_times_stored":
        commits, run = commit_times(state), change["run"]
        before = [each for each in commits["runs"] if each["object"]["key"] not in change["inputs"]]
        recent = [line for line in commits["recent"] if line["seal"] > run["last"]["seal"]]
        state["commits"] = {"runs": [*before, run], "recent": recent}


def commit_times(state: State) -> dict[str, Any]:
    times: dict[str, Any] = state.setdefault("commits", {"runs": [], "recent": []})
    return times


def _committed(state: State, at: int, seal: int) -> None:
    commits = commit_times(state)
    before = [*(run["last"] for run in commits["runs"]), *commits["recent"]][-1:]
    commits["recent"].append({"at": max([at, *(line["at"] for line in before)]), "seal": seal})


def _put_ahead(state: State, gone: list[str], ahead: list[dict[str, Any]]) -> None:
    state["unsealed"] = [batch for batch in state["unsealed"] if batch["id"] not in gone]
    state["ahead"] = [*(batch for batch in state.get("ahead", []) if batch["id"] not in gone), *ahead]


def _evict(state: State) -> None:
    upper, keyed = trace_upper(state), is_keyed(state)
    bound = horizon(state) if keyed else EMPTY
    state["unsealed"] = [
        batch
        for batch in state["unsealed"]
        if batch["last_time"] >= upper or (keyed and batch["last_event_time"] >= bound)
    ]
    state["ahead"] = [batch for batch in state.get("ahead", []) if batch["last_time"] >= upper]
    state["remembered"] = [batch for batch in state.get("remembered", []) if batch["last_event_time"] >= bound]
    announced = set(announced_times(state))
    for snapshot in learned(state, upper - 1):
        (announced.discard if effect_of(snapshot) == "withdrawn" else announced.add)(time_of(snapshot))
    state["snapshots"] = [snapshot for snapshot in state["snapshots"] if known_at(snapshot) >= upper]
    kept = max(state.get("corrected_from", 0), state["complete_below"] - reprocessed(state))
    kept = min([kept, *map(time_of, state["snapshots"])])
    state["told"] = {"runs": [{"first": at, "step": 0, "count": 1} for at in sorted(announced) if at >= kept]}
    state["forgotten_below"] = max(0, bound) if keyed else 0


def _remember(state: State, change: dict[str, Any]) -> None:
    gone = change["inputs"]
    state["unsealed"] = [batch for batch in state["unsealed"] if batch["id"] not in gone]
    at = min((n for n, batch in enumerate(state["remembered"]) if batch["id"] in gone), default=None)
    left = [batch for batch in state["remembered"] if batch["id"] not in gone]
    at = len(left) if at is None else at
    state["remembered"] = [*left[:at], *([change["batch"]] if change["batch"] else []), *left[at:]]
    state["forgotten_below"] = max(state["forgotten_below"], change["horizon"])


def fact_batches(state: State) -> list[dict[str, Any]]:
    """The batches whose rows are facts."""
    return [*state["unsealed"], *state.get("remembered", [])]


def _compact(state: State, change: dict[str, Any]) -> None:
    at = [batch["id"] for batch in state["trace"]].index(change["inputs"][0])
    state["trace"][at : at + len(change["inputs"])] = [change["batch"]]


def _move(state: State, batch: str, source: str, target: str) -> None:
    moved = [each for each in state[source] if each["id"] == batch]
    state[source] = [each for each in state[source] if each["id"] != batch]
    state[target] += moved
    named = [snapshot for snapshot in state["snapshots"] if snapshot["batch"] == batch]
    for snapshot in named:
        snapshot["quarantined"] = target == "quarantined"
    if target == "unsealed":
        state["snapshots"] = [snapshot for snapshot in state["snapshots"] if snapshot["batch"] != batch] + named


def trace_upper(state: State) -> int:
    return state["trace"][-1]["description"]["upper"] if state["trace"] else 0


def _landed(state: State) -> dict[str, Any]:
    """What a declaration says of its files: its origin, and in format 1 the declaration itself."""
    declared: dict[str, Any] = state["collection"]
    return declared.get("origin", declared)


def time_of(snapshot: dict[str, Any]) -> int:
    return int(snapshot["interval"]["upper"] - 1)


def known_at(snapshot: dict[str, Any]) -> int:
    return max(time_of(snapshot), snapshot.get("learned_at") or 0)


def effect_of(snapshot: dict[str, Any]) -> str:
    return str(snapshot.get("effect", "told"))


def learned(state: State, time: int) -> list[dict[str, Any]]:
    """What is known of full snapshots at a time and not in the trace, in the order in which it is."""
    counting = (snapshot for snapshot in state["snapshots"] if not snapshot["quarantined"])
    return sorted((snapshot for snapshot in counting if known_at(snapshot) <= time), key=known_at)


def announced_times(state: State) -> list[int]:
    """When the full snapshots in the trace were true, as far as is remembered."""
    runs = state.get("told", {"runs": []})["runs"]
    return [run["first"] + number * run["step"] for run in runs for number in range(run["count"])]


def is_keyed(state: State) -> bool:
    return envelope(state) in ("upsert", "debezium")


def envelope(state: State) -> str:
    """What unsealed rows say; those of a derived collection are updates."""
    origin = _landed(state)
    return "updates" if origin.get("kind") == "derived" else str(origin["source"]["envelope"])


def reprocessed(state: State) -> int:
    """For how long files may be corrected."""
    return int(_landed(state).get("reprocess_for", 0))


def settled(state: State) -> int:
    """No fact that happened here or before is retracted."""
    return max([state["forgotten_below"], *(batch["description"]["since"] for batch in state["trace"])]) or -1


def _begin_to_correct(state: State, before: int) -> None:
    first = settled(state) + 1 if is_keyed(state) else 0
    state["corrected_from"] = max(state.get("corrected_from", 0), state["complete_below"] - before, first)


def horizon(state: State) -> int:
    """No fact to come happened below; none that is retracted at it, either."""
    late, corrects = _landed(state)["late"], reprocessed(state)
    reach = 0 if late["policy"] != "reemit" else EMPTY if late["max_lateness"] is None else late["max_lateness"]
    complete, upper = state["complete_below"], trace_upper(state)
    floor = max(min(state["since"], complete), complete - reach - corrects)
    first_times = [batch["first_event_time"] for batch in state["unsealed"] if batch["last_time"] >= upper]
    if not corrects and _landed(state)["source"].get("transactions"):
        return max(settled(state), min([floor, *first_times]) - 1)
    if not corrects:
        return max(state["forgotten_below"], min([floor, *first_times]))
    kept = max(state["corrected_from"], complete - corrects)
    first_times += [batch["first_event_time"] for batch in fact_batches(state) if batch["interval"]["upper"] > kept]
    return max(settled(state), min([floor, *first_times]) - 1)


class SecondReader:
    """A collection's newest state, opened once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = newest_state(folder)
        self.upper = trace_upper(self.state)
        declared = self.state["collection"]
        self.key, self.value = declared["key"], declared["value"]

    def forwarded(self, time: int) -> int:
        """The state's compaction function."""
        since, rungs = self.state["since"], self.state["rungs"]
        if time >= since or since == EMPTY:
            return time
        if not rungs:
            return int(since)
        time = max(time, rungs[-1]["lower"])
        rung = next(rung for rung in rungs if time >= rung["lower"])
        return int(time // rung["interval"] * rung["interval"] + rung["interval"] - 1)

    def as_of(self, time: int, event_time: int = EMPTY) -> Counter[Item]:
        """The collection as known at `time`, as of `event_time`: how often it holds each row."""
        if not (time < self.state["seal"] and all(self.forwarded(each) == each for each in (time, event_time))):
            raise Unreadable(f"{time}, {event_time}")
        if self.state["since"] == EMPTY:
            raise Unreadable("since is the empty frontier")
        if event_time < self.state.get("event_times_from", 0) and event_time != EMPTY:
            raise Unreadable(f"event times are known from {self.state['event_times_from']} on")
        counts: Counter[Item] = Counter()
        for item, learned, happened, diff in (*self.in_trace, *self._beyond(time)):
            if learned <= time and happened <= event_time:
                counts[item] += diff
        return Counter({item: count for item, count in counts.items() if count})

    def commits(self) -> list[tuple[int, int]]:
        """When the seal was moved, by the wall clock, and to where."""
        commits, lines = commit_times(self.state), []
        for run in commits["runs"]:
            stored = document(self.folder / run["object"]["key"])
            lines += zip(accumulate(stored["at"]), accumulate(stored["seals"]), strict=True)
        return lines + [(line["at"], line["seal"]) for line in commits["recent"]]

    def committed(self, at: int) -> Counter[Item]:
        """What the collection knew at a time of the wall clock."""
        seals = [seal for time, seal in self.commits() if time <= at]
        if not seals:
            raise Unreadable(f"no commit by {at} is recorded")
        return self.as_of(seals[-1] - 1)

    @cached_property
    def in_trace(self) -> list[tuple[Item, int, int, int]]:
        return [self._update(row) for row in self._rows(self.state["trace"])]

    def _beyond(self, time: int) -> Iterable[tuple[Item, int, int, int]]:
        """The updates at or above the trace upper, up to `time`."""
        if time < self.upper:
            return ()
        if envelope(self.state) == "snapshot":
            return self._differences(time)
        if is_keyed(self.state):
            return self._resolved(time)
        waiting = [*self.state["unsealed"], *self.state.get("ahead", [])]
        return [u for u in map(self._update, self._rows(waiting)) if self.upper <= u[1] <= time]

    def _update(self, row: Row) -> tuple[Item, int, int, int]:
        return self._item(row, (*self.key, *self.value)), row["_time"], row["_event_time"], row["_diff"]

    def _item(self, row: Row, columns: Iterable[dict[str, Any]]) -> Item:
        return tuple((column["name"], widened(row[column["id"]], column["type"])) for column in columns)

    def _table(self, parts: Any) -> list[dict[str, Any]]:
        """The parts of a batch: listed there, or in an object that is named there, or in the leaves below it."""
        if not isinstance(parts, dict):
            return parts or []
        block = document(self.folder / parts["key"])
        if block.get("kind") != "node":
            return list(block["parts"])
        below = [(child["hull"], self._table(child["object"])) for child in block["blocks"]]
        for hull, some in below:
            check_hull(hull, some)
        return [part for _, some in below for part in some]

    def _rows(self, batches: Iterable[State]) -> Iterator[Row]:
        """The rows of batches: a user's column by its id, Tidemark's by name."""
        for batch in batches:
            for part in self._table(batch["parts"]):
                retracted = {"_retracted": part.get("retractions", 0) > 0}
                table = pq.read_table(self.folder / part["file"]["key"])
                check_bounds(self.folder / part["file"]["key"], part)
                check_tail((self.folder / part["file"]["key"]).read_bytes(), part.get("tail"))
                ids = [(field.metadata or {}).get(b"PARQUET:field_id") for field in table.schema]
                absent = {column["id"]: None for column in (*self.key, *self.value)}
                names = [
                    int(number) if number and not field.name.startswith("_") else field.name
                    for field, number in zip(table.schema, ids, strict=True)
                ]
                for cells in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    yield absent | dict(zip(names, cells, strict=True)) | retracted

    def _differences(self, time: int) -> Iterator[tuple[Item, int, int, int]]:
        """What is learned of full snapshots: by how much what one says differs, until the next one announced."""
        times = announced_times(self.state)
        ends = [*times, EMPTY]
        older, *others = [self._until(end) for end in ends]
        content = dict(zip(times, others, strict=True))
        for snapshot in learned(self.state, time):
            at, known, effect = time_of(snapshot), known_at(snapshot), effect_of(snapshot)
            before = content.get(max((each for each in content if each < at), default=-1), older)
            was = content.get(at, before)
            rows = self._counted(snapshot["batch"])
            now = {"told": rows, "withdrawn": before, "corrected": _added(was, rows)}[effect]
            following = min((each for each in content if each > at), default=None)
            for item in {*was, *now}:
                yield item, known, at, now[item] - was[item]
                if following is not None:
                    yield item, known, following, was[item] - now[item]
            content[at] = now
            if effect == "withdrawn":
                del content[at]

    def _until(self, end: int) -> Counter[Item]:
        """What the trace adds up to of what happened before `end`; all of it for the last."""
        counts: Counter[Item] = Counter()
        for item, _, happened, diff in self.in_trace:
            if happened < end or end == EMPTY:
                counts[item] += diff
        return counts

    def _counted(self, batch: str) -> Counter[Item]:
        rows: Counter[Item] = Counter()
        for row in self._rows(each for each in self.state["unsealed"] if each["id"] == batch):
            rows[self._item(row, (*self.key, *self.value))] += row["_diff"]
        return rows

    def _resolved(self, time: int) -> Iterator[tuple[Item, int, int, int]]:
        """What facts learned from the trace upper on, up to `time`, change."""
        bound = horizon(self.state)
        facts: dict[Item, list[Row]] = {}
        for row in self._rows(fact_batches(self.state)):
            if self.upper <= row["_time"] <= time or (row["_time"] < self.upper and row["_event_time"] >= bound):
                facts.setdefault(self._item(row, self.key), []).append(row)
        for key, rows in facts.items():
            known = sorted(self._left(row for row in rows if row["_time"] < self.upper), key=_place)
            new = []
            for learned in sorted({row["_time"] for row in rows if row["_time"] >= self.upper}):
                left = self._left(row for row in rows if row["_time"] == learned)
                new += sorted(left, key=lambda row: (not row["_retracted"], _place(row)))
            if new:
                yield from self._placed(key, known, new, self._before(key, bound))

    def _left(self, facts: Iterable[Row]) -> list[Row]:
        """What is said and not retracted among some facts, and what is retracted and not said among them."""
        sums: dict[Any, list[Row]] = {}
        for fact in facts:
            kept = sums.setdefault((_place(fact), self._said(fact)), [])
            if kept and kept[0]["_retracted"] != fact["_retracted"]:
                kept.pop()
            else:
                kept.append(fact)
        return [fact for kept in sums.values() for fact in kept]

    def _said(self, fact: Row) -> Item | None:
        return None if fact["_deleted"] else self._item(fact, self.value)

    def _placed(
        self, key: Item, history: list[Row], new: list[Row], base: Item | None
    ) -> Iterator[tuple[Item, int, int, int]]:
        for fact in new:
            after, sign = self._said(fact), 1
            at = sum(_place(known) < _place(fact) for known in history)
            if fact["_retracted"]:
                at, sign = next(n for n in range(at, len(history)) if self._said(history[n]) == after), -1
                del history[at]
            before = self._said(history[at - 1]) if at else base
            moments = [(fact["_event_time"], before, after)]
            moments += [(history[at]["_event_time"], after, before)] if at < len(history) else []
            for happened, old, now in moments:
                for value, diff in ((old, -sign), (now, sign)):
                    if value is not None:
                        yield key + value, fact["_time"], happened, diff
            if sign > 0:
                history.insert(at, fact)

    def _before(self, key: Item, bound: int) -> Item | None:
        """The value that by the trace a key had before its oldest remembered fact."""
        counts: Counter[Item] = Counter()
        for item, _, happened, diff in self.in_trace:
            if item[: len(key)] == key and happened <= bound:
                counts[item[len(key) :]] += diff
        return next((value for value, count in counts.items() if count), None)


def check_bounds(path: Path, part: dict[str, Any]) -> None:
    """The bounds that a part's record and its footer have of timelines are those of the rows."""
    file = pq.ParquetFile(path)
    numbers = [int((field.metadata or {}).get(b"PARQUET:field_id", 0)) for field in file.schema_arrow]
    groups = [file.read_row_group(group) for group in range(file.num_row_groups)]
    said = chunks_of(file)
    assert sorted(said) == sorted(recorded["id"] for recorded in part.get("timelines", []))
    for recorded in part.get("timelines", []):
        at = numbers.index(recorded["id"])
        chunks = [recorded_times(group.column(at)) for group in groups]
        values = [value for chunk in chunks for value in chunk]
        assert spanned(values) == [recorded["first"], recorded["last"], part["rows"] - recorded["nulls"]]
        for group, times in enumerate(chunks):
            sorted_here = None not in times and times == sorted(times)
            assert said[recorded["id"]]["ascends"][group] == str(int(sorted_here))
            for column, present in said[recorded["id"]]["present"].items():
                cells = groups[group].column(numbers.index(int(column))).to_pylist()
                given = [time for time, cell in zip(times, cells, strict=True) if cell is not None]
                first, last, _ = spanned(given)
                assert present[group] == (None if len(given) == len(cells) else [first, last, len(given)])


def check_tail(data: bytes, tail: dict[str, int] | None) -> None:
    """The end of a part is as recorded, and every column chunk has the bytes that its checksums say."""
    if tail is None:
        return
    end = data[-tail["bytes"] :]
    assert zlib.crc32(end) == tail["crc32"]
    footer = int.from_bytes(end[-8:-4], "little") + 8
    checksums = dict(struct.iter_unpack("<QI", end[:-footer]))
    assert all(zlib.crc32(data[:offset]) == crc32 for offset, crc32 in checksums.items())
    metadata = pq.read_metadata(io.BytesIO(data))
    for group, column in product(range(metadata.num_row_groups), range(metadata.num_columns)):
        chunk = metadata.row_group(group).column(column)
        first = chunk.dictionary_page_offset or chunk.data_page_offset
        assert {first, first + chunk.total_compressed_size} <= checksums.keys()


def check_hull(hull: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """What a node says of a child is what the parts below that have."""
    assert (hull["parts"], hull["rows"]) == (len(parts), sum(part["rows"] for part in parts))
    assert hull["bytes"] == sum(part["file"]["bytes"] for part in parts)
    assert hull["first_key"] == min(part["groups"][0][0] for part in parts)
    assert hull["last_key"] == max(part["last_key"] for part in parts)
    for name in ("time", "event_time"):
        assert hull[f"first_{name}"] == min(part[f"first_{name}"] for part in parts)
        assert hull[f"last_{name}"] == max(part[f"last_{name}"] for part in parts)
    for timeline in hull["timelines"]:
        some = [each for part in parts for each in part["timelines"] if each["id"] == timeline["id"]]
        assert len(some) == len(parts)
        first, last = spanned([each["first"] for each in some])[0], spanned([each["last"] for each in some])[1]
        assert [first, last, sum(each["nulls"] for each in some)] == [timeline[at] for at in ("first", "last", "nulls")]


def widened(value: Any, today: Any) -> Any:
    """A value of a part in today's type: a date that is a timestamp by now is its midnight."""
    is_day = today == "timestamp" and type(value) is date
    return datetime(value.year, value.month, value.day, tzinfo=UTC) if is_day else value


def recorded_times(column: pa.ChunkedArray) -> list[int | None]:
    """A timeline's values as records have them: of dates the microseconds of their midnights."""
    if not pa.types.is_date32(column.type):
        return list(column.cast("int64").to_pylist())
    return [day and day * 86_400_000_000 for day in column.cast("int32").to_pylist()]


def spanned(values: list[int | None]) -> list[int | None]:
    known = [value for value in values if value is not None]
    return [min(known, default=None), max(known, default=None), len(known)]


def chunks_of(file: pq.ParquetFile) -> dict[int, dict[str, Any]]:
    """What the footer says of row groups, by the id of each timeline."""
    text = (file.metadata.metadata or {}).get(b"tidemark.chunks", b'{"timelines":[]}')
    plain = text if text.startswith(b"{") else zlib.decompress(base64.b64decode(text))
    return {each["id"]: each for each in json.loads(plain)["timelines"]}


def _added(one: Counter[Item], other: Counter[Item]) -> Counter[Item]:
    return Counter({item: one[item] + other[item] for item in {*one, *other}})


def _place(fact: Row) -> tuple[Any, ...]:
    """Where a fact stands in its key's history; a null `_order` comes first."""
    order = fact["_order"]
    return fact["_event_time"], order is not None, order or 0, fact["_file"], fact["_row"]

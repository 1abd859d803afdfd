"""What was landed and committed, as it is reported to the oracle: read from the log itself, change by change."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from simulation.depths import reached
from simulation.keeping import Keeping
from simulation.oracle import Row
from simulation.waiting import is_replay
from support.world import DAY
from tidemark.model.change import (
    AheadMerged,
    Change,
    Compacted,
    CompactionAllowed,
    Ingested,
    Quarantined,
    Redefined,
    Released,
    Remembered,
    Sealed,
    Trimmed,
)
from tidemark.model.collection import Envelope
from tidemark.model.ledger import late_identity, path_hash
from tidemark.storage.sidecars import ledger


class Telling(Keeping):
    """Files and the rows in them, by which batch they count, and what became of them when they were late."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, list[Row]] = {}
        self.owner: dict[str, str] = {}
        self.accepted: dict[str, list[Row]] = {}
        self.read: dict[str, dict[str, list[Row]]] = {}
        self.letters: dict[str, list[Row]] = {}
        self.revived: dict[str, dict[str, list[Row]]] = {}
        self.learned: dict[str, int] = {}
        self.begins: dict[str, int] = {}
        self.as_now = False
        self.seen = 1

    def write(self, name: str, day: int, content: list[dict[str, Any]]) -> None:
        rows = []
        for row in content:
            time = day * DAY + row["dt"]
            happened = max(0, time - row["lag"]) if self.world.collection.landed.event_time else time
            rows.append({**row, "t": time, "e": happened})
        self.world.land(day, name.split("/")[1].removesuffix(".jsonl"), rows)
        self.files[name] = [self.as_row(name, number, row) for number, row in enumerate(rows)]

    def as_row(self, name: str, number: int, row: dict[str, Any]) -> Row:
        declared = self.world.collection
        order = row["o"] if declared.landed.source.order_by and row["o"] is not None else -1
        value = None if declared.kind.facts and row["gone"] else (row["v"],)
        diff = row["d"] if declared.landed.source.envelope is Envelope.UPDATES else 1
        return Row(row["k"], value, row["t"], row["e"], (order, name, number), diff)

    def files_of(self, day: int) -> list[str]:
        return [name for name in self.files if name.startswith(f"{day * DAY}/")]

    def observe(self) -> None:
        """Tell the oracle what was committed since it last heard."""
        log = self.world.log()
        newest = log.newest_version()
        if newest == self.seen:
            return
        for record in reversed([*takewhile(lambda record: record.version > self.seen, log.history())]):
            self.tell(record.change, log.load(record.version - 1).state)
        self.seen = newest

    def tell(self, change: Change, before: Any) -> None:
        oracle = self.oracle
        if isinstance(change, Ingested):
            self.tell_ingested(change, before)
        elif isinstance(change, Sealed):
            assert change.upper >= max(oracle.seal, change.complete_below)
            assert change.complete_below >= oracle.complete
            oracle.seal, oracle.complete = change.upper, change.complete_below
        elif isinstance(change, CompactionAllowed):
            oracle.since, oracle.rungs = change.since, tuple((rung.lower, rung.interval) for rung in change.rungs)
        elif isinstance(change, Quarantined):
            gone = self.accepted[change.batch]
            oracle.rows = [row for row in oracle.rows if row not in gone]
            for name, batch in self.owner.items():
                if batch == change.batch:
                    self.owner[name] = ""
            for name, letters in self.revived.get(change.batch, {}).items():
                self.letters[name] += letters
        elif isinstance(change, Released):
            oracle.rows += self.accepted[change.batch]
            for name, letters in self.revived.get(change.batch, {}).items():
                self.letters[name] = [row for row in self.letters[name] if row not in letters]
            for name in self.named(change.sources):
                assert not self.owner[name]
                self.owner[name] = change.batch
        elif isinstance(change, Compacted):
            self.tell_compacted(change, before)
        elif isinstance(change, Trimmed):
            reached("trimmed")
        elif isinstance(change, AheadMerged):
            sorted_ = any(batch.level for batch in change.batches)
            reached("what is ahead was sorted by buckets" if sorted_ else "what is ahead was merged")
        elif isinstance(change, Remembered):
            reached("remembered facts merged" if change.batch else "remembered facts merged to nothing")
        elif isinstance(change, Redefined):
            oracle.allow(change.collection.landed.late.policy, change.collection.landed.late.max_lateness)

    def tell_compacted(self, change: Compacted, before: Any) -> None:
        inputs = [batch for batch in before.trace if batch.id in change.inputs]
        if len(inputs) >= 3:
            reached("merge of three and more")
        if len(inputs) == 1:
            reached("a lone batch is rewritten")
        if change.batch.parts in [batch.parts for batch in inputs]:
            reached("a merge that moves no data")
        elif isinstance(change.batch.parts, tuple) and any(part.cancels for part in change.batch.parts):
            reached("what cancels was stored separately")
        if change.kept_rows:
            reached("what is stored separately is kept")
        if change.batch.description.rungs:
            reached("a merge that keeps instants below since")

    def named(self, sources: tuple[int, ...]) -> list[str]:
        return [name for name in self.files if path_hash(name) in sources]

    def learned_batches(self) -> list[str]:
        """Batches that count and brought what was complete already: late rows and replayed ones."""
        out = {batch.id for batch in self.world.state.quarantined}
        return [batch for batch in self.learned if batch not in out]

    def turn(self, lower: int) -> int:
        """Up to where all is complete when the turn of the interval comes that begins at a time."""
        return max(0, lower - self.world.collection.landed.grace) if lower else 0

    def ticks(self, batch: str, complete: int) -> bool:
        """Whether what a batch brought late cannot wait for its own interval's seal."""
        return self.turn(self.begins[batch]) < complete

    def late_of(self, batch: str) -> list[Row]:
        return [row for row in self.accepted[batch] if row.time == self.learned[batch]]

    def tell_replayed(self, change: Ingested, before: Any) -> None:
        oracle, batch = self.oracle, change.batch.id
        entries = {entry.path: entry for entry in ledger.entries(self.world.truth, before.ledger)}
        named = {path_hash(late_identity(entry.late)): entry for entry in entries.values() if entry.late}
        merged = max(min(before.since, before.complete_below), before.forgotten_below)
        taken: dict[str, list[Row]] = {}
        self.accepted[batch], self.read[batch], moved = [], {}, 0
        for source in change.sources:
            entry = named[source]
            while entry.replay_of is not None:
                reached("replayed of what a replay left")
                entry = entries[entry.replay_of]
            letters = self.letters[entry.path]
            kept = [row for row in letters if not oracle.two_times or row.event_time >= merged]
            taken[entry.path] = letters if self.as_now else kept
            moved += len(taken[entry.path]) - len(kept)
            self.letters[entry.path] = [row for row in letters if row not in taken[entry.path]]
            learned = max(oracle.seal, self.turn(entry.interval.lower))
            for row in taken[entry.path]:
                happened = row.event_time if row in kept and oracle.two_times else learned
                self.accepted[batch].append(row._replace(time=learned, event_time=happened))
        assert change.rows_replayed == len(self.accepted[batch])
        assert change.rows_late_moved == moved
        self.revived[batch] = taken
        self.learned[batch], self.begins[batch] = oracle.seal, change.fence.interval.lower
        oracle.rows += self.accepted[batch]
        reached("replayed and moved" if moved else "replayed")

    def tell_ingested(self, change: Ingested, before: Any) -> None:
        if is_replay(change):
            self.tell_replayed(change, before)
            return
        oracle = self.oracle
        oracle.forgotten_below = before.forgotten_below
        names = self.named(change.sources)
        assert len(names) == len(change.sources)
        for name in names:
            assert not self.owner.get(name), f"{name} is counted twice"
            self.owner[name] = change.batch.id if change.batch else "none"
        came = [row for name in names for row in self.files[name]]
        lower = change.fence.interval.lower
        taken, complete = oracle.judge(came, self.turn(lower)), max(oracle.complete, self.turn(lower))
        late = [row for row in taken if row.order in {r.order for r in came if r.event_time < complete}]
        assert change.rows_late_applied == len(late)
        assert change.rows_late_discarded == len(came) - len(taken)
        assert change.rows_late_moved == (len(late) if oracle.moves else 0)
        orders = {row.order for row in taken}
        for name in names:
            self.letters[name] = [row for row in self.files[name] if row.order not in orders]
        if change.batch:
            self.accepted[change.batch.id] = taken
            self.read[change.batch.id] = {name: self.files[name] for name in names}
        if any(r.time > read.time for r in taken for read in came if r.order == read.order and r not in late):
            reached("on time below the ticks")
        if late:
            self.learned[change.batch.id] = max(oracle.seal, self.turn(lower))
            self.begins[change.batch.id] = lower
            if complete > oracle.complete:
                reached("late before its interval")
            reached("late and moved to the seal" if oracle.moves else "late and applied")
        if len(came) > len(taken):
            reached("late and discarded")
        if oracle.keyed:
            for row in late:
                deep = [b.description for b in before.trace if b.level > 0]
                later = [r for r in oracle.rows if r.key == row.key and r.event_time > row.event_time]
                if any(d.lower <= r.time < d.upper for d in deep for r in later):
                    reached("late fact before a compacted one")
        oracle.rows += taken

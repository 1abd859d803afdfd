"""The kinds of collections: what their unsealed rows are, and how these become updates. One strategy object each.

    kind            an unsealed row is                     it becomes updates
    additive        an update already                      as it is; consolidation adds up
    keyed           a fact: what a key's value became      placed among the facts of its key (model/fact.py)
    full snapshot   one of all rows there are at a time    by what differs from before (model/full_snapshot.py)

After the drain all kinds are alike: updates in the trace, which compaction, reads, retention and gates treat the same.
So whatever differs is asked of the kind, in the room where it is done, by the name it has here:

    model/kind.py      laws of states: what is remembered, what is forgotten, what counts together
    plan/kinds.py      what a drain and a read open, into which tasks they are cut, how answers are checked
    arrow/kernels/updates.py   the updates that a task stands for

A new kind is one class in each of the first two, and a kernel in the third where its rows are neither updates nor facts
nor whole contents. Nobody else asks which kinds there are; the flags of a kind say what is true of its rows.

An example. Complete below 30, with a lateness of 10, nothing to come happened below 20: that is the horizon. What was
drained of an additive collection needs no unsealed batch any more, and is evicted. Of a keyed one a batch with a fact
of 22 stays: without it a late fact of 21 could not end where that one begins. A batch whose facts all happened below 20
goes; the trace has what they amounted to.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.batch import TraceBatch, UnsealedBatch
from tidemark.model.frontier import EMPTY
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.interval import Interval


@dataclass(frozen=True)
class Kind:
    """What differs between collections in the laws of their states; as it is here for one that has nothing special.

    `facts`: unsealed rows are facts, in the columns and order of facts; else updates. `one_value`: a key holds one
    value at most, so that one value that replaces one other can be recognised. `has_times`: rows may say when they
    happened, and so may be late. `whole_intervals`: the files of an interval count together or not at all.
    `waits_ahead`: rows count wherever they are, so that a drain may put those that are still to come ahead, among those
    of other batches. `corrects_history`: a corrected file is placed among what happened then, so nothing of that may be
    merged; where it is not, what it changes is added where the rest of its time was moved to.
    """

    name: str
    facts: bool = False
    one_value: bool = False
    has_times: bool = True
    whole_intervals: bool = False
    waits_ahead: bool = False
    corrects_history: bool = False

    def remembered_from(self, horizon: int) -> int:
        """Unsealed rows that happened from here on are kept though they were drained, as later ones are placed among
        them; EMPTY: none are. `horizon` is the state's: nothing to come happened below it."""
        return EMPTY

    def forgets_below(self, horizon: int) -> int:
        """What happened below here is not known any more once batches are evicted or trimmed by the horizon; 0: all is.
        It is recorded, since rows that happened there must not be taken any more."""
        return 0

    def facts_in(self, batch: UnsealedBatch | TraceBatch) -> bool:
        """Whether a batch holds facts; else it holds updates."""
        return self.facts and isinstance(batch, UnsealedBatch)

    def said_by(
        self,
        batch: str,
        interval: Interval,
        rows: int,
        effect: Effect = Effect.ANNOUNCED,
        learned_at: int | None = None,
        net: int | None = None,
    ) -> FullSnapshot | None:
        """What the files of an interval, ingested as `batch`, say together, beyond what each row says; or what is
        learned of that afterwards, at a seal."""
        return None


@dataclass(frozen=True)
class Additive(Kind):
    """Rows are updates already: envelopes `append` and `updates`."""

    name: str = "additive"
    waits_ahead: bool = True


@dataclass(frozen=True)
class Keyed(Kind):
    """Rows are facts about a key: envelopes `upsert` and `debezium`. They are remembered down to the horizon, and the
    trace is forwarded to it at most, so that facts to come find the value that the key had there."""

    name: str = "keyed"
    facts: bool = True
    one_value: bool = True
    corrects_history: bool = True

    def remembered_from(self, horizon: int) -> int:
        return horizon

    def forgets_below(self, horizon: int) -> int:
        return horizon


@dataclass(frozen=True)
class Snapshots(Kind):
    """Rows are all there are at the end of their interval: envelope `snapshot`. An empty one says that there are none,
    so what was said is recorded separately from the batch that has the rows."""

    name: str = "full snapshot"
    has_times: bool = False
    whole_intervals: bool = True
    corrects_history: bool = True

    def said_by(
        self,
        batch: str,
        interval: Interval,
        rows: int,
        effect: Effect = Effect.ANNOUNCED,
        learned_at: int | None = None,
        net: int | None = None,
    ) -> FullSnapshot | None:
        return FullSnapshot(batch, interval, rows, effect=effect, learned_at=learned_at, net=net)


ADDITIVE = Additive()
KEYED = Keyed()
FULL_SNAPSHOT = Snapshots()

"""Changes: what a commit records. The state at version N is the fold of the changes up to N (transition/)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidemark.model.arrangement import Fence, Hold, LedgerRun
from tidemark.model.batch import PartsTable, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Gate
from tidemark.model.dump import Dump
from tidemark.model.frontier import Rung

REPLAY = "replay"
"""The step of an ingest that reads dead letters, not an interval."""


@dataclass(frozen=True)
class Created:
    """The first change of every collection."""

    collection: Collection
    kind: Literal["created"] = "created"


@dataclass(frozen=True)
class Redefined:
    """The declaration changed, in a way that data at rest can follow (evolution.py)."""

    collection: Collection
    kind: Literal["redefined"] = "redefined"


@dataclass(frozen=True)
class Attempted:
    """An attempt has started and fences off older attempts at the same step of the same interval."""

    fence: Fence
    kind: Literal["attempted"] = "attempted"


@dataclass(frozen=True)
class Ingested:
    """An interval was read. `batch` is None if nothing was left to apply; `run` is None if no file was new.

    `sources` are 64-bit hashes of the paths taken: two concurrent ingests that share one conflict. `first_on_time` is
    the smallest lateness coordinate among rows judged not late: a seal beyond it makes the judgement stale.
    `rows_late_moved` of the late rows applied lost their event time to the seal. A replay of dead letters is an ingest
    whose step is REPLAY and whose sources are late objects: it applies `rows_replayed`, and reads no interval.
    `dump` is what the files are together, where each interval brings a dump.
    """

    fence: Fence
    batch: UnsealedBatch | None
    run: LedgerRun | None
    sources: tuple[int, ...] = ()
    first_on_time: int | None = None
    rows_late_applied: int = 0
    rows_late_discarded: int = 0
    bad_files: int = 0
    rows_late_moved: int = 0
    rows_replayed: int = 0
    dump: Dump | None = None
    kind: Literal["ingested"] = "ingested"


@dataclass(frozen=True)
class Refused:
    """Source files that could not be taken stopped their interval; `run` remembers which and why.

    `fence` and `sources` as in Ingested: the last word on a file must not be an older attempt's.
    """

    run: LedgerRun
    fence: Fence
    sources: tuple[int, ...] = ()
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True)
class Certified:
    """A gate passed: it vouches for batches, or for the frontier up to `upper`."""

    gate: Gate
    suite: str
    batches: tuple[str, ...] = ()
    upper: int | None = None
    kind: Literal["certified"] = "certified"


@dataclass(frozen=True)
class Sealed:
    """The seal moved to `upper`; `wanted` is how far a run asked for and could not get because of a hole."""

    upper: int
    wanted: int
    kind: Literal["sealed"] = "sealed"


@dataclass(frozen=True)
class Drained:
    """`[batch.lower, batch.upper)` moved into the trace. The parts of a batch `taken_over` were written by ingests."""

    fence: Fence
    batch: TraceBatch
    taken_over: bool = False
    kind: Literal["drained"] = "drained"


@dataclass(frozen=True)
class Compacted:
    """Neighbouring trace batches, oldest first, replaced by one."""

    fence: Fence
    inputs: tuple[str, ...]
    batch: TraceBatch
    kind: Literal["compacted"] = "compacted"


@dataclass(frozen=True)
class LedgerMerged:
    """Neighbouring runs of the ledger, oldest first (by object key), replaced by one."""

    inputs: tuple[str, ...]
    run: LedgerRun
    kind: Literal["ledger_merged"] = "ledger_merged"


@dataclass(frozen=True)
class Quarantined:
    """A batch taken out; `run` frees its source files so that mended ones can be ingested."""

    batch: str
    run: LedgerRun
    kind: Literal["quarantined"] = "quarantined"


@dataclass(frozen=True)
class Released:
    """A quarantined batch put back; `run` claims its source files again, `sources` as in Ingested."""

    batch: str
    run: LedgerRun
    sources: tuple[int, ...] = ()
    kind: Literal["released"] = "released"


@dataclass(frozen=True)
class CompactionAllowed:
    """`since` moved: history below it may be merged, as far as `rungs` keep no instants of it. Permission, not work.

    Holds that expire at wall-clock `now` or before are gone with it."""

    since: int
    rungs: tuple[Rung, ...] = ()
    now: int = 0
    kind: Literal["compaction_allowed"] = "compaction_allowed"


@dataclass(frozen=True)
class HoldPlaced:
    """A named hold on `since`; one of the same name is replaced."""

    hold: Hold
    kind: Literal["hold_placed"] = "hold_placed"


@dataclass(frozen=True)
class HoldDropped:
    """A named hold let go."""

    name: str
    kind: Literal["hold_dropped"] = "hold_dropped"


@dataclass(frozen=True)
class Trimmed:
    """An unsealed batch rewritten without the rows nobody needs any more: `batch` has its id, `source` is the parts
    table that was read. Of a keyed collection facts that happened below `horizon` are forgotten with it."""

    fence: Fence
    batch: UnsealedBatch
    source: PartsTable
    horizon: int = 0
    kind: Literal["trimmed"] = "trimmed"


Change = (
    Created
    | Redefined
    | Attempted
    | Ingested
    | Refused
    | Certified
    | Sealed
    | Drained
    | Compacted
    | LedgerMerged
    | Quarantined
    | Released
    | CompactionAllowed
    | HoldPlaced
    | HoldDropped
    | Trimmed
)

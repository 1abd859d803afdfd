"""Every kind of change is described, says what it did in one line, and comes back as it was stored."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.support.drawn import declared, fence_of, hold_of, ref, run_of, trace_batch, unsealed_batch
from tidemark.model.acceptance import Acceptance, AcceptedFailure
from tidemark.model.arrangement import Arrangement
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.change import (
    AheadMerged,
    Attempted,
    Certified,
    Change,
    CommitTimesStored,
    Compacted,
    CompactionAllowed,
    Corrected,
    Created,
    Drained,
    Dropped,
    HoldDropped,
    HoldPlaced,
    Ingested,
    LedgerMerged,
    Published,
    Publishing,
    Quarantined,
    Redefined,
    Refused,
    Released,
    Remembered,
    Restored,
    Sealed,
    Trimmed,
    Unpublished,
)
from tidemark.model.collection import Gate
from tidemark.model.commit_times import CommitRun, SealCommit
from tidemark.model.derived import Consumed, Consumption, Mode, Root
from tidemark.model.frontier import EMPTY
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.publication import TableFormat, pin_of
from tidemark.storage.documents.codec import decode, encode

DOCS = Path(__file__).resolve().parents[3] / "docs"
HOW_TO = DOCS / "how-to" / "add-a-change-kind.md"
FENCE = fence_of("ingest", "0-10", "token")
BATCH = unsealed_batch(["b1", "0..9"], 0)
TRACE = trace_batch(["t1", "[0][10][0]", "1", "0"])
RUN = run_of("r1")
SPAN = "[1970-01-01T00:00:00Z, 1970-01-01T00:00:00.000010Z)"

CORRECTS = fence_of("correct", "0-10", "token")
CONSUMED = Consumption(10, 9, (Consumed("a", 9, 3, "i", (Root("a", 9),)),), "d", "b1", ended=True, building=True)
WITHDRAWN = FullSnapshot("w1", FENCE.interval, 0, effect=Effect.WITHDRAWN, learned_at=10)
ACCEPTED = Acceptance(
    "b1",
    FENCE.interval,
    "s",
    "ada",
    7,
    "a strike on that day",
    3,
    (AcceptedFailure("expect_x(status)", 2), AcceptedFailure("expect_y")),
)
HAPPENED = "happened 1970-01-01T00:00:00Z to 1970-01-01T00:00:00.000009Z"

SAID: list[tuple[Any, str]] = [
    (Created(declared({})), "created collection tides"),
    (Redefined(declared({})), "changed the declaration"),
    (Dropped("tides"), "dropped collection tides"),
    (Dropped("tides", "3-token"), "went on collecting the dropped collection tides"),
    (Restored(7, Arrangement(declared({}))), "brought collection tides back, as of version 7"),
    (Attempted(FENCE), f"started to ingest {SPAN}, attempt token"),
    (Attempted(fence_of("collect", "0-10", "token")), "began to remove objects that no version names"),
    (Ingested(FENCE, BATCH, RUN, sources=(1, 2)), f"ingested {SPAN}: 1 row of 2 files as b1"),
    (Ingested(FENCE, BATCH, RUN, sources=(1, 2, 3), corrected=2, rows_added=5, rows_retracted=1),
     f"ingested {SPAN} again as b1: 2 files corrected, 1 row retracted and 5 added, 1 new file, {HAPPENED}"),
    (Ingested(FENCE, None, RUN, sources=(1,), corrected=1, bad_files=1),
     f"ingested {SPAN} again: nothing changed, 1 file holds other bytes and says the same, 1 file set aside"),
    (Ingested(FENCE, None, RUN, sources=(1,), corrected=1),
     f"ingested {SPAN} again: nothing changed, 1 file holds other bytes and says the same"),
    (Ingested(FENCE, None, RUN, sources=(1,), corrected=1, rows_retracted=5, snapshot=WITHDRAWN),
     f"withdrew the full snapshot of {SPAN}, 5 rows of 1 file, as w1"),
    (Ingested(fence_of("cut", "0-10", "t"), BATCH, RUN, sources=(1,), cut=Cut(Reason.COUNT, (Reason.TIME,), 2.5)),
     f"ingested {SPAN} so far: 1 row of 1 file as b1; cut by count, also time; 2.5 rows/s; 1 bytes, 1 a row"),
    (Ingested(fence_of("cut", "0-10", "t"), BATCH, RUN, sources=(1,), keys=3,
              cut=Cut(Reason.MEMORY, opened=1_000_000, at=91_400_000)),
     f"ingested {SPAN} so far: 1 row of 1 file as b1; cut by memory; 3 keys; 1 bytes, 1 a row; open for 1m30s"),
    (Ingested(FENCE, BATCH, RUN, sources=(1,), cut=Cut(Reason.END_OF_INPUT)),
     f"ingested {SPAN}: 1 row of 1 file as b1"),
    (Ingested(FENCE, None, None, rows_late_discarded=3), f"ingested {SPAN}: no rows, 3 late discarded"),
    (Ingested(FENCE, None, None, rows_left_out=3), f"ingested {SPAN}: no rows, 3 left out by `only`"),
    (Ingested(fence_of("replay", "0-10", "t"), BATCH, RUN, rows_late_moved=1, rows_replayed=2),
     "replayed 2 dead letters as b1, 1 of them moved to the seal"),
    (Corrected(CORRECTS, CONSUMED, BATCH, None, Mode.BY_KEY, EMPTY, rows_read=7, rows_added=2, rows_retracted=1),
     "corrected to 1970-01-01T00:00:00.000010Z, by key: 7 rows read, 1 row retracted and 2 added as b1"),
    (Corrected(CORRECTS, CONSUMED, None, CONSUMED, Mode.WHOLE, 3, why="first build"),
     "corrected to 1970-01-01T00:00:00.000010Z, whole (first build): 0 rows read, nothing differs"),
    (
        Corrected(CORRECTS, CONSUMED, BATCH, CONSUMED, Mode.WHOLE, 0, rows_added=2, repaired=2, why="checked"),
        (
            "corrected to 1970-01-01T00:00:00.000010Z, whole (checked): 0 rows read, "
            "0 rows retracted and 2 added as b1, 2 rows repaired"
        ),
    ),
    (Refused(RUN, FENCE), "refused 1 source file that cannot be taken"),
    (Certified(Gate.TRACE, "s", ("b1", "b2")), "trace gate certified b1, b2"),
    (
        Certified(Gate.UNSEALED, "s", ("b1",), None, (ACCEPTED,)),
        (
            f"unsealed gate certified b1; b1 of {SPAN} accepted by ada at 1970-01-01T00:00:00.000007Z: a strike on "
            "that day (failed: expect_x(status), 2 rows; expect_y and 1 more)"
        ),
    ),
    (Certified(Gate.FRONTIER, "s", (), 10), "frontier gate certified all below 1970-01-01T00:00:00.000010Z"),
    (Sealed(0, 0, 10), "sealed to 1970-01-01T00:00:00Z, asked for 1970-01-01T00:00:00.000010Z"),
    (Drained(FENCE, TRACE), f"drained {SPAN}: 1 row as t1"),
    (Compacted(FENCE, ("t0", "t9"), TRACE), f"compacted 2 batches of {SPAN}: 1 row at level 0 as t1"),
    (
        CommitTimesStored(("r0",), CommitRun(ref("r9"), 128, SealCommit(1, 10), SealCommit(3, 30))),
        "stored 128 commit times",
    ),
    (LedgerMerged(("r0", "r9"), RUN), "merged 2 runs of the ledger: 1 source file"),
    (Quarantined("b1", RUN), "quarantined b1, which frees 1 source file"),
    (Quarantined("b1", None), "quarantined b1, and what it had consumed"),
    (Released("b1", RUN), "released b1 with 1 source file"),
    (CompactionAllowed(10), "allowed compaction: readable are "),
    (HoldPlaced(hold_of(["report", "0"])), "placed hold report at 1970-01-01T00:00:00Z"),
    (HoldDropped("report"), "let hold report go"),
    (Trimmed(FENCE, BATCH, ref("p0")), "trimmed b1 to 1 row"),
    (Remembered(FENCE, ("b0", "b9"), replace(BATCH, level=1)),
     "merged 2 batches of remembered facts: 1 row at level 1 as b1"),
    (Drained(FENCE, TRACE, opened=("b1",), ahead=(BATCH,)), f"drained {SPAN}: 1 row as t1"),
    (AheadMerged(FENCE, ("b0", "b9"), (BATCH,), 7), "merged 2 batches ahead into 1: 1 row"),
    (AheadMerged(FENCE, ("b0",), ()), "merged 1 batch ahead into 0: 0 rows"),
    (Remembered(FENCE, ("b0", "b9"), None), "merged 2 batches of remembered facts: nothing is left"),
    (Publishing(TableFormat.ICEBERG, "db.t", "a1", (pin_of(ref("p0")),)),
     "began to publish to iceberg table db.t, which is to name parts of 1 more batches"),
    (Published(TableFormat.DELTA, "/t", "", "7", 7, 3, 10, ("p0",)),
     "published to delta table /t: known up to 1970-01-01T00:00:00.000010Z"),
    (Unpublished(TableFormat.ICEBERG), "ended the publication in iceberg"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), SAID, ids=lambda each: getattr(each, "kind", None))
def test_it_says_what_it_did_and_comes_back_as_it_went(change: Any, said: str) -> None:
    assert change.words.startswith(said) if said.endswith(" ") else change.words == said
    assert decode(encode(change, Change), Change, name="change") == change


def kinds() -> dict[str, type]:
    return {field.default: of for of in get_args(Change) for field in fields(of) if field.name == "kind"}


def test_every_kind_is_its_own_and_tried_above() -> None:
    assert len(kinds()) == len(get_args(Change))
    assert {change.kind for change, _ in SAID} == kinds().keys()


def test_every_kind_is_described_in_the_format() -> None:
    text = (DOCS / "format.md").read_text()
    table = text[text.index("| kind | effect |") :].partition("\n\n")[0]
    described = {
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert described == kinds().keys()


def test_the_example_of_the_how_to_is_one() -> None:
    shown: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL):
        exec(compile(block, str(HOW_TO), "exec", dont_inherit=True), shown)
    noted = shown["Noted"]("late again")
    assert (noted.kind, noted.words) == ("noted", "noted: late again")
    for name in re.findall(r"`((?:\w+/)+[\w.]+)`", HOW_TO.read_text()):
        assert any((folder / name).exists() for folder in (DOCS.parent, DOCS.parent / "include/tidemark/model")), name

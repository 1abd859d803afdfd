"""The examples in the doc comments of the core are what the code does."""

from __future__ import annotations

import doctest
import inspect
import re
from types import ModuleType

import pytest

from support.drawn import trace_batch, unsealed_batch
from support.world import collection
from tests.oracles import correction_buffer
from tests.oracles.correction_buffer import chain, forwarding, totals
from tests.pure.plan.test_compaction_policy import Simulated
from tidemark.arrow.kernels import merge
from tidemark.model import chunk, fact, full_snapshot, reread
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.batch import TraceBatch
from tidemark.model.change import Certified, Change, Compacted, CompactionAllowed, Drained, Ingested, Sealed
from tidemark.model.collection import Gate
from tidemark.model.correction_buffer import buckets, chain_rule, stack
from tidemark.model.interval import Interval
from tidemark.model.transition import Applied, apply
from tidemark.plan import compact

pytestmark = pytest.mark.pure


BUFFER = [correction_buffer, buckets, chain, chain_rule, forwarding, stack, totals]


@pytest.mark.parametrize(
    "module", [merge, fact, full_snapshot, reread, chunk, *BUFFER], ids=lambda module: module.__name__
)
def test_what_is_shown_as_python_is_what_it_prints(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


def test_compaction_counts_through_levels_as_shown() -> None:
    shown = re.findall(r"^ +(\d+)  ((?:\d+/\d )*\d+/\d) +(\d+)$", compact.__doc__ or "", re.MULTILINE)
    assert len(shown) == 7
    simulated, found = Simulated(live_batches=3), {}
    for drains in range(1, 15):
        before = len(simulated.rewritten)
        simulated.take_in(1)
        trace = " ".join(f"{batch.rows}/{batch.level}" for batch in simulated.state.trace)
        found[drains] = (trace, sum(simulated.rewritten[before:]))
    for drains, trace, rows in shown:
        assert found[int(drains)] == (trace, int(rows)), f"after {drains} drains"
    assert "14 rows were written 14 + 27 times" in (compact.__doc__ or "")
    assert sum(simulated.rewritten) == 27


def fence(step: str, number: int = 0) -> Fence:
    return Fence(step, Interval(number, number + 1), "t", unannounced=True)


DECLARED = collection()
X, Y = trace_batch(["x", "[0][20][0]", "4", "0"]), trace_batch(["y", "[20][30][0]", "2", "0"])
CHANGES: dict[str, Change] = {
    "ingest a, times 0 to 9": Ingested(fence("ingest"), unsealed_batch(["a", "0..9"], 0), None),
    "ingest b, times 5 to 25": Ingested(fence("ingest", 1), unsealed_batch(["b", "5..25"], 1), None),
    "seal to 20": Sealed(20, 20, 20),
    "drain": Drained(fence("drain"), X, opened=("b",), ahead=(unsealed_batch(["b", "5..25"], 1),)),
    "allow compaction to 15": CompactionAllowed(15),
    "seal to 30": Sealed(30, 30, 30),
    "drain again": Drained(fence("drain"), Y),
    "compact": Compacted(fence("compact"), ("x", "y"), trace_batch(["z", "[0][30][15]", "6", "1"])),
}


def applied(state: Arrangement, change: Change) -> Arrangement:
    outcome = apply(state, change)
    assert isinstance(outcome, Applied), outcome
    return outcome.state


def test_a_state_goes_through_its_changes_as_shown() -> None:
    lines = (inspect.getdoc(Arrangement) or "").splitlines()
    (start,) = [at for at, line in enumerate(lines) if line.lstrip().startswith("change ")]
    shown = [re.split(r" {2,}", line.strip()) for line in lines[start + 1 : start + 1 + len(CHANGES)]]
    state, found = Arrangement(DECLARED), []
    for name, change in CHANGES.items():
        state = applied(state, change)
        certified = Certified(Gate.UNSEALED, DECLARED.suite(Gate.UNSEALED), tuple(b.id for b in state.unsealed))
        state = applied(state, certified) if isinstance(change, Ingested) else state
        waiting = [*(batch.id for batch in state.unsealed), *(f"({batch.id})" for batch in state.ahead)]
        columns = [" ".join(waiting), " ".join(described(b) for b in state.trace)]
        frontiers = [str(state.seal), str(state.trace_upper), str(state.since)]
        found.append([name.removesuffix(" again"), *frontiers, *filter(None, columns)])
    assert found == shown


def described(batch: TraceBatch) -> str:
    return str(batch.description)


def test_a_late_fact_changes_what_it_is_said_to_change() -> None:
    """The example of arrow/kernels/resolve.py, by the law: A is stored, B is known at 30, C comes at 28."""
    known, late = fact.Fact(("k",), ("B",), 1, 30, (0,)), fact.Fact(("k",), ("C",), 5, 28, (0,))
    updates = [
        f"{update.diff:+} {update.value[0]} {update.event_time}" for update in fact.resolve(("A",), [known], [late])
    ]
    assert updates == ["-1 A 28", "+1 A 30", "+1 C 28", "-1 C 30"]

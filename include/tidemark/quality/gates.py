"""The gates. What each looks at, judges by and says to people is declared here and nowhere else; which step it is
behind is said by the step (jobs/steps/declared.py), what it certifies by the law (`Gate` in model/collection.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Gate
from tidemark.model.ledger import LedgerEntry
from tidemark.plan.gate import GateRequest
from tidemark.quality import suites
from tidemark.quality.evidence import (
    Corrected,
    Defined,
    Evidence,
    Inspected,
    compaction_evidence,
    frontier_evidence,
    trace_evidence,
    unsealed_evidence,
)
from tidemark.quality.suites import Rule


@dataclass(frozen=True)
class Seen:
    """What a gate judges by: the state, what the gate was asked to look at, what reading it found, by batch;
    `recent()`, the newest entries of the ledger, and `corrected()`, what batches retracted that correct files, by
    batch; `defined()`, what is known of batches of derived collections. These are read only if asked for."""

    state: Arrangement
    request: GateRequest
    found: Mapping[str, Inspected]
    recent: Callable[[], Sequence[LedgerEntry]]
    corrected: Callable[[], Mapping[str, Corrected]] = dict
    defined: Callable[[], Mapping[str, Defined]] = dict


@dataclass(frozen=True)
class Judgement:
    """How one gate judges. `evidence` are the figures, `rules` what must hold of each row of them.

    `checks` (Markdown) says what it looks at, for people who find its task in Airflow, `mend` what to do there when it
    fails. `way_out` is at the end of a failure: `{collection}` and `{batch}` are its own, `{again}` is how the run is
    repeated; commands are between backticks.
    """

    rules: tuple[Rule, ...]
    evidence: Callable[[Seen], Evidence]
    checks: str
    way_out: str
    mend: str = ""
    rules_of_derived: tuple[Rule, ...] = ()
    rules_of_snapshots: tuple[Rule, ...] = ()

    def rules_of(self, collection: Collection) -> tuple[Rule, ...]:
        """The rules for a collection: beside those for all, those for derived ones, or for full snapshots."""
        if collection.kind.whole_intervals:
            return (*self.rules, *self.rules_of_snapshots)
        return (*self.rules, *self.rules_of_derived) if collection.is_derived else self.rules

    def out(self, collection: str, batch: str, *, again: str = "run again", rule: str = "") -> str:
        """The way out of a failure of a rule."""
        derived = rule in {one.name for one in self.rules_of_derived}
        return (_COMPUTE if derived else self.way_out).format(collection=collection, batch=batch, again=again)


_COMPUTE = (
    "`tidemark verify {collection} --definition` shows what differs; `tidemark quarantine {collection} {batch}`, then "
    "`tidemark correct {collection} --check` puts it right"
)
_LOOK = "nothing of it was published; look with `tidemark verify {collection} --data`"

GATES: dict[Gate, Judgement] = {
    Gate.UNSEALED: Judgement(
        suites.UNSEALED,
        lambda seen: unsealed_evidence(
            seen.state, seen.request, seen.found, seen.recent(), seen.corrected(), seen.defined()
        ),
        checks="Schema, nulls, time bounds, late share, volume, and the collection's own expectations, those about the "
        "rows of a whole day also where it has none. Of full snapshots the share of the rows before. Of a day that "
        "was run again and changed: how much of it was retracted, and that all of it had been there. Of a derived "
        "collection: the rows added and retracted, and some keys recomputed.",
        way_out="`tidemark quarantine {collection} {batch}`, mend the file, {again}",
        mend="`tidemark quarantine`, mend the file, clear the run.",
        rules_of_derived=suites.DEFINED,
        rules_of_snapshots=suites.SNAPSHOTS,
    ),
    Gate.FRONTIER: Judgement(
        suites.FRONTIER,
        lambda seen: frontier_evidence(seen.state, seen.request),
        checks="The seal only advances, over no batch without a certificate; no hole in what is complete.",
        way_out="ingest what is missing and pass the unsealed gate, {again}",
    ),
    Gate.TRACE: Judgement(
        suites.TRACE,
        lambda seen: trace_evidence(seen.state, seen.request, seen.found),
        checks="The trace is sorted, consolidated and within its bounds, its rows and sums as recorded.",
        way_out=_LOOK,
    ),
    Gate.COMPACTION: Judgement(
        suites.COMPACTION,
        lambda seen: compaction_evidence(seen.state, seen.request, seen.found),
        checks="The output's sum is its inputs', levels do not rise, the debt is bounded.",
        way_out=_LOOK,
    ),
}
"""Every gate's judgement."""


def way_out(gate: str, collection: Any, batch: str, *, again: str) -> str:
    """The way out of a failure of the gate called `gate`; nothing for one that is not known here."""
    judgement = GATES.get(Gate(gate)) if gate in list(Gate) else None
    return judgement.out(str(collection), batch, again=again) if judgement else ""

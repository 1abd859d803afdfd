"""Operations on one arrangement, step by step: each is a plan, an execution and a transition, or a read.

What our steps do at once the vectors do separately: our drain evicts too, so its trace is taken first and `evict`
evicts. Frontiers are set unchecked, as the vectors ask, so they are kept beside the batches. What asks for them works
on a state that has them, and is refused where there can be no such state; the rest works on one whose frontiers are at
their loosest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.conformance.plain import COLLECTION, frontier, frontier_of, multiset, plain_rows, read, update_of
from tests.conformance.stand import Stand, fits
from tests.conformance.steps import Step, perform, run_each
from tests.support import rules
from tidemark.arrow.kernels.merge import between
from tidemark.arrow.rows.consolidate import forwarded
from tidemark.model import admission, invariants
from tidemark.model.arrangement import Arrangement, evicted
from tidemark.model.batch import Description, TraceBatch
from tidemark.model.change import Compacted
from tidemark.model.frontier import EMPTY, CompactionFunction
from tidemark.plan.compact import CompactionRequest, next_pair
from tidemark.storage.sidecars import parts_table


class Subject:
    """An arrangement and the operations of the vectors upon it, by their names."""

    def __init__(self, initial: dict[str, Any]) -> None:
        self.stand = Stand()
        self.kept = Arrangement(COLLECTION, complete_below=EMPTY, seal=EMPTY, since=EMPTY)
        self.begun: dict[str, tuple[CompactionRequest, Compacted] | None] = {}
        self._seal, self._since = frontier_of(initial.get("seal", 0)), frontier_of(initial.get("since", 0))
        for batch in initial.get("trace_batches", ()):
            self.trace_append(batch)
        for batch in initial.get("unsealed_batches", ()):
            self.append_unsealed(batch)

    @property
    def state(self) -> Arrangement:
        """The batches kept and the frontiers set; Corruption if there can be no such state."""
        return replace(self.kept, complete_below=self._seal, seal=self._seal, since=self._since)

    def append_unsealed(self, step: Step) -> None:
        lower, upper = step["seqno"]
        times = [update_of(update).time for update in step["updates"]]
        invariants.check(rules.of_append(self.kept, (lower, upper), times))
        batch = self.stand.unsealed((lower, upper), step["updates"])
        self.kept = replace(self.kept, unsealed=(*self.kept.unsealed, batch))

    def drain(self, step: Step) -> dict[str, Any]:
        drained = self.stand.drained(self.state)
        if drained is None:
            return {"wrote": False}
        self.kept = replace(self.kept, trace=drained[0].trace)
        return {"wrote": True}

    def evict(self, step: Step) -> list[list[int]]:
        before, self.kept = self.kept, evicted(self.kept)
        return [list(batch.sequence) for batch in before.unsealed if batch not in self.kept.unsealed]

    def unsealed_step(self, step: Step) -> bool:
        self.evict(step)
        trimmed = self.stand.trimmed(self.kept)
        self.kept = trimmed or self.kept
        return trimmed is not None

    def update_seal(self, step: Step) -> None:
        self._seal = frontier_of(step["to"])

    def update_since(self, step: Step) -> None:
        self._since = frontier_of(step["to"])

    def validate_seal(self, step: Step) -> None:
        invariants.check(rules.of_seal(self._seal, frontier_of(step["to"])))

    def validate_since(self, step: Step) -> None:
        asked = CompactionFunction(frontier_of(step["to"]))
        invariants.check(admission.of_since(CompactionFunction(self._since), asked))

    def list_unsealed(self, step: Step) -> list[list[int]]:
        return [[*batch.sequence, batch.first_time, batch.last_time] for batch in self.kept.unsealed]

    def list_trace(self, step: Step) -> list[list[int | None]]:
        return [[*_promised(batch), batch.level] for batch in self.kept.trace]

    def unsealed_seqno_upper(self, step: Step) -> int:
        return self.kept.sequence_upper

    def trace_upper(self, step: Step) -> int | None:
        return frontier(self.kept.trace_upper)

    def seal(self, step: Step) -> int | None:
        return frontier(self._seal)

    def since(self, step: Step) -> int | None:
        return frontier(self._since)

    def describe(self, step: Step) -> dict[str, int | None]:
        return {"since": frontier(self._since), "upper": frontier(self._seal)}

    def validate(self, step: Step) -> None:
        invariants.check(self.state.violations())

    def read_unsealed(self, step: Step) -> list[Any]:
        lower, upper = frontier_of(step["lower"]), frontier_of(step["upper"])
        return plain_rows(self._unsealed(lower, upper))

    def read_trace(self, step: Step) -> dict[str, Any]:
        rows = plain_rows(read(self.stand.store, parts_table.parts_of(self.stand.store, self.kept.trace)))
        return {"since": frontier(self._since), "upper": frontier(self.kept.trace_upper), "updates": rows}

    def read_all(self, step: Step) -> dict[str, Any]:
        """Not `as_of`, which reads below the seal: a snapshot here contains what is beyond it too."""
        batches = read(self.stand.store, parts_table.parts_of(self.stand.store, self.kept.trace))
        batches += self._unsealed(self.kept.trace_upper, EMPTY)
        rows = plain_rows(forwarded(batch, CompactionFunction(self._since)) for batch in batches)
        return {"since": frontier(self._since), "seal": frontier(self._seal), "updates": rows}

    def _unsealed(self, lower: int, upper: int) -> list[Any]:
        invariants.check(rules.of_range(lower, upper))
        store = self.stand.store
        within = [b for b in self.kept.unsealed if lower <= b.last_time and b.first_time < upper]
        return [between(rows, lower, upper) for rows in read(store, parts_table.parts_of(store, within))]

    def next_compaction(self, step: Step) -> list[list[int | None]] | None:
        request = self._due()
        return [_promised(batch)[:2] for batch in request.inputs] if request else None

    def compact_step(self, step: Step) -> dict[str, Any]:
        request = self._due()
        if request is None:
            return {"deleted": [], "wrote": False}
        self.kept, change = self.stand.merged(self.kept, request)
        return self._finished(request, change)

    def begin_compaction(self, step: Step) -> list[list[int | None]] | None:
        request = self._due()
        if request is None:
            self.begun[_label(step)] = None
            return None
        self.kept, change = self.stand.merged(self.kept, request)
        self.begun[_label(step)] = request, change
        return [_promised(batch)[:2] for batch in request.inputs]

    def apply_compaction(self, step: Step) -> dict[str, Any]:
        begun = self.begun[_label(step)]
        return self._finished(*begun) if begun else {"deleted": [], "wrote": False}

    def trace_append(self, step: Step) -> None:
        description = Description(*(frontier_of(step.get(name, 0)) for name in ("lower", "upper", "since")))
        invariants.check(admission.of_trace_append(self.kept, description))
        invariants.check(rules.of_trace_rows(description, [[update_of(update) for update in step["updates"]]]))
        batch = self.stand.trace(description, step.get("level", 0), [step["updates"]])
        self.kept = replace(self.kept, trace=(*self.kept.trace, batch))

    def _due(self) -> CompactionRequest | None:
        """One pair a step, and only behind since: `compact_ahead` off, without the cascade."""
        trace = self.kept.trace
        at = next_pair([(batch,) for batch in trace], self._since)
        if at is None:
            return None
        older, newer = trace[at - 1 : at + 1]
        lower, upper = older.description.lower, newer.description.upper
        return CompactionRequest((older, newer), Description(lower, upper, self._since))

    def _finished(self, request: CompactionRequest, change: Compacted) -> dict[str, Any]:
        after = fits(self.kept, change)
        if after is None:
            return {"deleted": [], "wrote": False}
        self.kept = after
        return {"deleted": [_promised(batch) for batch in reversed(request.inputs)], "wrote": True}


def run(case: dict[str, Any]) -> None:
    """Raise, naming the step, where one does not do what is expected of it."""
    subject = Subject(case["initial"])
    run_each(case["steps"], lambda step: _run_step(subject, step))


def _run_step(subject: Subject, step: Step) -> None:
    name = step["op"].removesuffix("_in_order")
    expected = step.get("expect", {"ok": True})

    def check(found: Any) -> None:
        if "returns" in expected:
            _check_returned(expected["returns"], found, ordered=name != step["op"])

    perform(subject, name, step, expected, check)


def _check_returned(expected: Any, found: Any, *, ordered: bool) -> None:
    if isinstance(found, dict) and isinstance(expected, bool):
        found = found["wrote"]
    elif isinstance(found, dict) and not isinstance(expected, dict):
        found = found["updates" if "updates" in found else "deleted"]
    if isinstance(expected, dict):
        for name, value in expected.items():
            _check_returned(value, found[name], ordered=ordered)
        return
    if not ordered and _holds_updates(expected) and _holds_updates(found):
        expected, found = multiset(expected), multiset(found)
    assert found == expected, f"expected {expected}, found {found}"


def _holds_updates(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, list) and len(each) == 4 and not isinstance(each[0], int) for each in value
    )


def _promised(batch: TraceBatch) -> list[int | None]:
    description = batch.description
    return [frontier(time) for time in (description.lower, description.upper, description.since)]


def _label(step: Step) -> str:
    """What a remembered result is called, whichever field says so."""
    (label,) = (value for name, value in step.items() if isinstance(value, str) and name not in ("op", "note"))
    return label


KINDS = {"arrangement": run}

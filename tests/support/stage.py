"""States drawn as text, the commands of text files upon them, and the states as text again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from datadriven import Case
from support.world import collection
from tidemark.errors import TidemarkError
from tidemark.model.arrangement import Arrangement, Certificate, Fence, FrontierCertificate, LedgerRun
from tidemark.model.batch import Description, ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.change import (
    Attempted,
    Certified,
    Change,
    Compacted,
    CompactionAllowed,
    Drained,
    Ingested,
    LedgerMerged,
    Quarantined,
    Redefined,
    Refused,
    Released,
    Sealed,
)
from tidemark.model.collection import Envelope, Gate, Late
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.transition import Applied, FencedOff, Stale, apply
from tidemark.plan.compact import plan_compaction
from tidemark.plan.drain import plan_drain
from tidemark.plan.gate import plan_gate
from tidemark.plan.ingest import plan_ingest
from tidemark.plan.read import plan_as_of, plan_changes
from tidemark.plan.seal import plan_seal

Words = dict[str, str]


class Stage:
    """Holds the state that a file's commands work on."""

    state = Arrangement(collection())

    def __call__(self, case: Case) -> str:
        command = getattr(self, "do_" + case.command.replace("-", "_"))
        try:
            return str(command(case.words, case.input))
        except TidemarkError as error:
            return f"{error.kind}: {error}"

    def do_define(self, words: Words, lines: str) -> str:
        """A state from nothing: the collection in the words, one thing in each line."""
        self.state = Arrangement(declared(words), **numbers(words, "seal", "since", "wanted", "forgotten"))
        found: dict[str, list[Any]] = {name: [] for name in ("unsealed", "trace", "quarantined", "fences", "ledger")}
        certificates: list[Certificate] = []
        ingested = IntervalSet()
        for line in lines.split("\n") if lines else []:
            kind, *rest = line.split()
            if kind == "ingested":
                for text in rest:
                    ingested = ingested.add(interval_of(text))
            elif kind == "fence":
                found["fences"].append(fence_of(*rest))
            elif kind == "run":
                found["ledger"].append(run_of(rest[0]))
            else:
                batch = (trace_batch if kind == "trace" else unsealed_batch)(rest, len(found[kind]))
                found[kind].append(batch)
                gate = Gate.TRACE if kind == "trace" else Gate.UNSEALED
                if "vouched" in rest:
                    certificates.append(Certificate(batch.id, self.state.collection.suite(gate)))
        vouched = None
        if "vouched" in words:
            vouched = FrontierCertificate(int(words["vouched"]), self.state.collection.suite(Gate.FRONTIER))
        held = {name: tuple(values) for name, values in found.items()}
        self.state = replace(self.state, **held, ingested=ingested, certificates=tuple(certificates), vouched=vouched)
        return self.do_show({}, "")

    def do_show(self, words: Words, lines: str) -> str:
        return "\n".join(shown(self.state))

    def do_horizon(self, words: Words, lines: str) -> str:
        return str(self.state.horizon)

    def do_apply(self, words: Words, lines: str) -> str:
        """Changes, one a line: what becomes of each, and the state after."""
        return "\n".join(self._applied(*line.split()) for line in lines.split("\n"))

    def _applied(self, kind: str, *rest: str) -> str:
        flags = dict(word.split("=", 1) for word in rest if "=" in word)
        plain = [word for word in rest if "=" not in word]
        outcome = apply(self.state, CHANGES[kind](self.state, plain, flags))
        if isinstance(outcome, Applied):
            self.state = outcome.state
            return "\n".join([f"{kind}: applied", *("  " + line for line in shown(self.state))])
        if isinstance(outcome, Stale | FencedOff):
            return f"{kind}: {'stale' if isinstance(outcome, Stale) else 'fenced off'}: {outcome.reason}"
        return f"{kind}: already applied"

    def do_plan_seal(self, words: Words, lines: str) -> str:
        plan = plan_seal(self.state, int(words["upper"]))
        return "nothing to do" if plan is None else f"seal to {plan.upper}, wanted {plan.wanted}"

    def do_plan_drain(self, words: Words, lines: str) -> str:
        plan = plan_drain(self.state)
        if plan is None:
            return "nothing to do"
        told = f"{plan.description} of {names(plan.batches)}"
        if self.state.collection.keyed:
            told += f", among {names(plan.remembered)} and {names(plan.trace)}, horizon {plan.horizon}"
        return told

    def do_plan_compaction(self, words: Words, lines: str) -> str:
        plan = plan_compaction(self.state)
        if plan is None:
            return "nothing to do"
        how = "metadata only" if plan.moves_no_data else f"merge, level {plan.level(int(words.get('rows', '999')))}"
        return f"{names(plan.inputs)} -> {plan.description} {how}"

    def do_plan_gate(self, words: Words, lines: str) -> str:
        plan = plan_gate(self.state, Gate(words["gate"]))
        if plan is None:
            return "nothing to do"
        return f"up to {plan.upper}" if plan.upper is not None else names((*plan.unsealed, *plan.trace))

    def do_plan_ingest(self, words: Words, lines: str) -> str:
        plan = plan_ingest(self.state, interval_of(words["interval"]), (), {})
        return "nothing to do" if plan is None else f"judge by seal {plan.seal}, since {plan.since}"

    def do_plan_as_of(self, words: Words, lines: str) -> str:
        asked = {name: int(words[name]) for name in ("time", "event_time") if name in words}
        plan = plan_as_of(self.state, **asked)
        return f"trace {names(plan.trace)}, unsealed {names(plan.unsealed)}, among {names(plan.remembered)}"

    def do_plan_changes(self, words: Words, lines: str) -> str:
        plan = plan_changes(self.state, **{name: int(value) for name, value in words.items()})
        return f"({plan.after}, {plan.upto}] trace {names(plan.trace)}, unsealed {names(plan.unsealed)}"


def declared(words: Words) -> Any:
    """The collection of a `define` line."""
    policy, _, reach = words.get("late", "reemit").partition(":")
    plain: dict[str, Any] = numbers(words, "start", "end", "grace")
    if "quality" in words:
        plain["quality"] = (words["quality"],)
    return collection(
        Envelope(words.get("envelope", "append")),
        late=Late(policy, int(reach) if reach else None),
        compact_ahead=words.get("compact_ahead") != "off",
        **plain,
    )


def numbers(words: Words, *wanted: str) -> dict[str, int]:
    return {name: int(words[name]) for name in wanted if name in words}


def ints(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def interval_of(text: str) -> Interval:
    return Interval(*ints(text))


def ref(name: str) -> ObjectRef:
    return ObjectRef(name, 1, "0")


def run_of(name: str) -> LedgerRun:
    return LedgerRun(ref(name), 1, "a", "b")


def fence_of(step: str, interval: str, token: str) -> Fence:
    return Fence(step, interval_of(interval), token)


def unsealed_batch(words: list[str], at: int) -> UnsealedBatch:
    """`name 0..4 [events=0..4] [rows=5]`: closed bounds."""
    flags = dict(word.split("=", 1) for word in words if "=" in word)
    times = ints(words[1])
    events = ints(flags["events"]) if "events" in flags else times
    rows = int(flags.get("rows", 1))
    return UnsealedBatch(
        words[0], Interval(0, 10), ref(words[0]), 1, rows, rows, 0, *times, *events, sequence=(at, at + 1)
    )


def trace_batch(words: list[str], at: int = 0) -> TraceBatch:
    """`name [0][10][0] rows level`."""
    rows = int(words[2])
    parts = ref(words[0]) if rows else None
    return TraceBatch(words[0], Description(*ints(words[1])), int(words[3]), rows, rows, 0, parts, int(rows > 0))


def _ingested(state: Arrangement, plain: list[str], flags: Words) -> Change:
    batch = unsealed_batch([plain[2], plain[3], *(f"{k}={v}" for k, v in flags.items())], 0) if len(plain) > 2 else None
    on_time = int(flags["on_time"]) if "on_time" in flags else None
    return Ingested(fence_of("ingest", plain[0], plain[1]), batch, None, first_on_time=on_time)


def _certified(state: Arrangement, plain: list[str], flags: Words) -> Change:
    gate = Gate(plain[0])
    upper = int(flags["upper"]) if "upper" in flags else None
    return Certified(gate, flags.get("suite") or state.collection.suite(gate), tuple(plain[1:]), upper)


def _redefined(state: Arrangement, plain: list[str], flags: Words) -> Change:
    changed = declared({"envelope": state.collection.source.envelope} | flags)
    return Redefined(changed)


CHANGES: dict[str, Callable[[Arrangement, list[str], Words], Change]] = {
    "attempted": lambda state, plain, flags: Attempted(fence_of(*plain)),
    "ingested": _ingested,
    "refused": lambda state, plain, flags: Refused(run_of(plain[2]), fence_of("ingest", plain[0], plain[1])),
    "certified": _certified,
    "sealed": lambda state, plain, flags: Sealed(int(plain[0]), int(flags.get("wanted", plain[0]))),
    "drained": lambda state, plain, flags: Drained(fence_of("drain", plain[0], plain[1]), trace_batch(plain[2:])),
    "compacted": lambda state, plain, flags: Compacted(
        fence_of("compact", plain[0], plain[1]), tuple(flags["of"].split("+")), trace_batch(plain[2:])
    ),
    "merged": lambda state, plain, flags: LedgerMerged(tuple(flags["of"].split("+")), run_of(plain[0])),
    "quarantined": lambda state, plain, flags: Quarantined(plain[0], run_of("freed-" + plain[0])),
    "released": lambda state, plain, flags: Released(plain[0], run_of("claimed-" + plain[0])),
    "allowed": lambda state, plain, flags: CompactionAllowed(int(plain[0])),
    "redefined": _redefined,
}


def names(batches: Any) -> str:
    return "+".join(batch.id for batch in batches) or "nothing"


def shown(state: Arrangement) -> list[str]:
    """A state, the parts of it that are not empty."""
    frontiers = f"seal={state.seal} trace_upper={state.trace_upper} since={state.since}"
    frontiers += "".join(f" {name}={value}" for name in ("wanted", "forgotten") if (value := getattr(state, name)))
    frontiers += f" vouched={state.vouched_upper}" if state.vouched_upper else ""
    lines = [frontiers]
    lines += [f"ingested {' '.join(f'[{i.lower},{i.upper})' for i in state.ingested)}"] if [*state.ingested] else []
    for kind, batches in (("unsealed", state.unsealed), ("quarantined", state.quarantined)):
        for batch in batches:
            events = f" events={batch.first_event_time}..{batch.last_event_time}"
            told = f"{kind} {batch.id} {batch.first_time}..{batch.last_time}{events} sequence={batch.sequence[0]}"
            lines.append(told + (" vouched" if state.is_vouched(batch) else ""))
    for trace in state.trace:
        lines.append(f"trace {trace.id} {trace}" + (" vouched" if state.is_vouched(trace) else ""))
    lines += [
        f"fence {fence.step} [{fence.interval.lower},{fence.interval.upper}) {fence.token}" for fence in state.fences
    ]
    return lines + ([f"ledger {' '.join(run.object.key for run in state.ledger)}"] if state.ledger else [])

"""States drawn as text, the commands of text files upon them, and the states as text again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datadriven import Case
from support.drawn import (
    CHANGES,
    Words,
    asked,
    declared,
    fence_of,
    hold_of,
    interval_of,
    ints,
    numbers,
    run_of,
    rungs_of,
    rungs_shown,
    trace_batch,
    unsealed_batch,
)
from support.world import collection
from tidemark.errors import TidemarkError
from tidemark.model.arrangement import Arrangement, Certificate, FrontierCertificate
from tidemark.model.batch import Part, UnsealedBatch
from tidemark.model.collection import Gate
from tidemark.model.interval import IntervalSet
from tidemark.model.transition import Applied, FencedOff, Stale, apply
from tidemark.plan.compact import plan_compaction
from tidemark.plan.drain import plan_drain
from tidemark.plan.gate import plan_gate
from tidemark.plan.ingest import plan_ingest
from tidemark.plan.read import plan_as_of, plan_changes
from tidemark.plan.retain import check_hold, plan_retention
from tidemark.plan.seal import plan_seal
from tidemark.plan.trim import plan_trim, trimming


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
        self.state = Arrangement(
            declared(words),
            rungs=rungs_of(words.get("rungs", "")),
            seals=tuple(ints(words.get("seals", ""))),
            complete_below=int(words.get("complete_below", words.get("seal", 0))),
            **numbers(words, "seal", "since", "requested_seal", "forgotten_below"),
        )
        kinds = ("unsealed", "ahead", "trace", "quarantined", "fences", "ledger", "holds")
        found: dict[str, list[Any]] = {name: [] for name in kinds}
        certificates: list[Certificate] = []
        ingested = IntervalSet()
        for line in lines.split("\n") if lines else []:
            kind, *rest = line.split()
            if kind == "ingested":
                for text in rest:
                    ingested = ingested.add(interval_of(text))
            elif kind == "fence":
                found["fences"].append(fence_of(*rest))
            elif kind == "hold":
                found["holds"].append(hold_of(rest))
            elif kind == "run":
                found["ledger"].append(run_of(rest[0]))
            else:
                batch = (trace_batch if kind == "trace" else unsealed_batch)(rest, len(found[kind]))
                found[kind].append(batch)
                gate = Gate.TRACE if kind == "trace" else Gate.UNSEALED
                if "certified" in rest:
                    certificates.append(Certificate(batch.id, self.state.collection.suite(gate)))
        frontier_certificate = None
        if "certified" in words:
            frontier_certificate = FrontierCertificate(
                int(words["certified"]), self.state.collection.suite(Gate.FRONTIER)
            )
        members = {name: tuple(values) for name, values in found.items()}
        self.state = replace(
            self.state,
            **members,
            ingested=ingested,
            certificates=tuple(certificates),
            frontier_certificate=frontier_certificate,
        )
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
        if plan is None:
            return "nothing to do"
        complete = f", complete below {plan.complete_below}" if plan.complete_below != plan.upper else ""
        return f"seal to {plan.upper}{complete}, requested {plan.requested_seal}"

    def do_plan_drain(self, words: Words, lines: str) -> str:
        plan = plan_drain(self.state)
        if plan is None:
            return "nothing to do"
        unsealed = plan.unsealed
        line = f"{plan.description} of {names(unsealed.batches)}"
        if self.state.collection.kind.facts:
            line += f", among {names(unsealed.remembered)} and {names(unsealed.trace)}, horizon {unsealed.horizon}"
        if plan.still_to_come:
            line += f"; {names(plan.still_to_come)} still to come"
        return line

    def do_plan_compaction(self, words: Words, lines: str) -> str:
        plan = plan_compaction(self.state)
        if plan is None:
            return "nothing to do"
        how = "metadata only" if plan.moves_no_data else f"merge, level {plan.level(int(words.get('rows', '999')))}"
        return f"{names(plan.inputs)} -> {plan.description}{rungs_shown(plan.description.rungs)} {how}"

    def do_plan_trim(self, words: Words, lines: str) -> str:
        """The first batch to trim, of one part each, or of the parts in the lines: `10 0..9 events=0..9`."""
        options = {name: float(value) for name, value in words.items()}
        for plan in plan_trim(self.state):
            parts = [part_of(*line.split()) for line in lines.splitlines()] or [whole(plan.batch)]
            if cuts := trimming(plan, parts, **options):
                line = f"{plan.batch.id} below {plan.lower}, horizon {plan.horizon}"
                if not lines:
                    return line
                named = [[f"{p.first_time}..{p.last_time}" for p in some] for some in (cuts.dropped, cuts.cut)]
                return "; ".join(
                    [line, *(f"{what} {' '.join(p)}" for what, p in zip(("drop", "cut"), named, strict=True) if p)]
                )
        return "nothing to do"

    def do_plan_retention(self, words: Words, lines: str) -> str:
        """The reads asked in the lines: `newest`, `as_of 5`, `changes 3 9`; none at all without lines."""
        reads = [asked(*line.split()) for line in lines.split("\n")] if lines else []
        plan = plan_retention(self.state, int(words.get("now", 0)), reads)
        return "nothing to do" if plan is None else f"since {plan.since}{rungs_shown(plan.rungs)}, now {plan.now}"

    def do_check_hold(self, words: Words, lines: str) -> str:
        check_hold(self.state, int(words["since"]))
        return "can be placed"

    def do_plan_gate(self, words: Words, lines: str) -> str:
        plan = plan_gate(self.state, Gate(words["gate"]))
        if plan is None:
            return "nothing to do"
        return f"up to {plan.upper}" if plan.upper is not None else names((*plan.unsealed, *plan.trace))

    def do_plan_ingest(self, words: Words, lines: str) -> str:
        interval = interval_of(words["interval"])
        plan = plan_ingest(self.state, interval, (), {}, turn=self.state.collection.landed.complete_before(interval))
        if plan is None:
            return "nothing to do"
        complete = f", complete below {plan.complete_below}" if plan.complete_below != plan.seal else ""
        return f"judge by seal {plan.seal}{complete}, since {plan.since}"

    def do_plan_as_of(self, words: Words, lines: str) -> str:
        asked = {name: int(words[name]) for name in ("time", "event_time") if name in words}
        plan = plan_as_of(self.state, **asked)
        unsealed = plan.unsealed
        return f"trace {names(plan.trace)}, unsealed {names(unsealed.batches)}, among {names(unsealed.remembered)}"

    def do_plan_changes(self, words: Words, lines: str) -> str:
        plan = plan_changes(self.state, **{name: int(value) for name, value in words.items()})
        return f"({plan.after}, {plan.upto}] trace {names(plan.trace)}, unsealed {names(plan.unsealed.batches)}"


def whole(batch: UnsealedBatch) -> Part:
    """A batch as one part."""
    bounds = (batch.first_time, batch.last_time, batch.first_event_time, batch.last_event_time)
    return Part(batch.parts, batch.rows, 0, (((0,), batch.rows),), (0,), *bounds)


def part_of(rows: str, times: str, events: str = "") -> Part:
    """`10 0..9 [events=0..9]`."""
    return whole(unsealed_batch([f"{rows}:{times}:{events}", times, f"rows={rows}", *([events] if events else [])], 0))


def names(batches: Any) -> str:
    return "+".join(batch.id for batch in batches) or "nothing"


def shown(state: Arrangement) -> list[str]:
    """A state, the parts of it that are not empty."""
    frontiers = f"seal={state.seal} trace_upper={state.trace_upper} since={state.since}{rungs_shown(state.rungs)}"
    frontiers += f" complete_below={state.complete_below}" if state.complete_below != state.seal else ""
    frontiers += "".join(
        f" {name}={value}" for name in ("requested_seal", "forgotten_below") if (value := getattr(state, name))
    )
    frontiers += f" certified={state.certified_upper}" if state.certified_upper else ""
    lines = [frontiers + (f" seals={','.join(map(str, state.seals))}" if state.seals else "")]
    lines += [f"hold {h.name} {h.since}" + (f" until {h.expires}" if h.expires else "") for h in state.holds]
    lines += [f"ingested {' '.join(f'[{i.lower},{i.upper})' for i in state.ingested)}"] if [*state.ingested] else []
    shelves = {
        "unsealed": state.unsealed,
        "ahead": state.ahead,
        "remembered": state.remembered,
        "quarantined": state.quarantined,
    }
    for kind, batches in shelves.items():
        for batch in batches:
            events = f" events={batch.first_event_time}..{batch.last_event_time}"
            line = f"{kind} {batch.id} {batch.first_time}..{batch.last_time}{events} sequence={batch.sequence[0]}"
            line += f" in {batch.parts.key}" if batch.trimmed else ""
            line += f" level={batch.level}" if batch.level else ""
            line += f" learned_at={batch.learned_at}" if batch.learned_at is not None else ""
            lines.append(line + (" certified" if state.is_certified(batch) else ""))
    for trace in state.trace:
        line = f"trace {trace.id} {trace}{rungs_shown(trace.description.rungs)}"
        line += f" retractions={trace.retractions}" if trace.retractions else ""
        lines.append(line + (" certified" if state.is_certified(trace) else ""))
    lines += [
        f"fence {fence.step} [{fence.interval.lower},{fence.interval.upper}) {fence.token}" for fence in state.fences
    ]
    return lines + ([f"ledger {' '.join(run.object.key for run in state.ledger)}"] if state.ledger else [])

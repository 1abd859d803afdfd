"""What the lines and words of text files draw: batches, changes, declarations."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from support.world import collection
from tidemark.model.arrangement import Arrangement, Fence, Hold, LedgerRun
from tidemark.model.batch import Description, ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.change import (
    AheadMerged,
    Attempted,
    Certified,
    Change,
    Compacted,
    CompactionAllowed,
    Drained,
    HoldDropped,
    HoldPlaced,
    Ingested,
    LedgerMerged,
    Quarantined,
    Redefined,
    Refused,
    Released,
    Remembered,
    Sealed,
    Trimmed,
)
from tidemark.model.collection import Envelope, Gate, Late
from tidemark.model.frontier import Rung
from tidemark.model.interval import Interval
from tidemark.model.retention import Retention, Step
from tidemark.plan.retain import ReadAsked

Words = dict[str, str]


def declared(words: Words) -> Any:
    """The collection of a `define` line."""
    policy, _, reach = words.get("late", "reemit").partition(":")
    plain: dict[str, Any] = numbers(words, "start", "end", "grace", "live_batches")
    if "retention" in words:
        plain["retention"] = retention_of(words["retention"])
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


def rungs_of(text: str) -> tuple[Rung, ...]:
    """`8/2,0/4`: from 8 up every 2, from 0 up every 4."""
    return tuple(Rung(*ints(rung)) for rung in text.split(",") if rung)


def rungs_shown(rungs: tuple[Rung, ...]) -> str:
    return " rungs=" + ",".join(f"{rung.lower}/{rung.interval}" for rung in rungs) if rungs else ""


def retention_of(text: str) -> Retention:
    """`full_merge`, `tiered:3`, `time_boundary:4`, `ladder:all<7,2<20,10`."""
    policy, _, rest = text.partition(":")
    if policy == "tiered":
        return Retention(policy, keep_recent=int(rest))
    if policy == "time_boundary":
        return Retention(policy, interval=int(rest))
    steps = []
    for step in rest.split(",") if policy == "ladder" else []:
        keep, _, reach = step.partition("<")
        steps.append(Step(None if keep == "all" else int(keep), int(reach) if reach else None))
    return Retention(policy, steps=tuple(steps))


def hold_of(words: list[str]) -> Hold:
    """`name since [expires]`."""
    return Hold(words[0], *(int(number) for number in words[1:]))


def asked(kind: str = "", *times: str) -> ReadAsked:
    if kind == "changes":
        return ReadAsked(int(times[1]), int(times[0]))
    return ReadAsked(int(times[0])) if times else ReadAsked(0, newest=True)


def run_of(name: str) -> LedgerRun:
    return LedgerRun(ref(name), 1, "a", "b")


def fence_of(step: str, interval: str, token: str) -> Fence:
    return Fence(step, interval_of(interval), token)


def unsealed_batch(words: list[str], at: int) -> UnsealedBatch:
    """`name 0..4 [events=0..4] [rows=5] [learned_at=0] [level=1]`: closed bounds."""
    flags = dict(word.split("=", 1) for word in words if "=" in word)
    times = ints(words[1])
    events = ints(flags["events"]) if "events" in flags else times
    rows = int(flags.get("rows", 1))
    learned_at = int(flags["learned_at"]) if "learned_at" in flags else None
    bounds = (*times, *events, (at, at + 1))
    known = {"learned_at": learned_at, "level": int(flags.get("level", 0))}
    return UnsealedBatch(words[0], Interval(0, 10), ref(words[0]), 1, rows, rows, 0, *bounds, **known)


def several(text: str) -> tuple[UnsealedBatch, ...]:
    """`a:20..29+b:30..39:level=1`."""
    return tuple(unsealed_batch(words.split(":"), 0) for words in text.split("+") if words)


def trace_batch(words: list[str], at: int = 0) -> TraceBatch:
    """`name [0][10][0] rows level [rungs=0/4] [retractions=2] [parts=other]`."""
    flags = dict(word.split("=", 1) for word in words if "=" in word)
    rows = int(words[2])
    parts = ref(flags.get("parts", words[0])) if rows else None
    description = Description(*ints(words[1]), rungs_of(flags.get("rungs", "")))
    retractions = int(flags.get("retractions", 0))
    return TraceBatch(words[0], description, int(words[3]), rows, rows, 0, parts, int(rows > 0), retractions)


def _ingested(state: Arrangement, plain: list[str], flags: Words) -> Change:
    batch = unsealed_batch([plain[2], plain[3], *(f"{k}={v}" for k, v in flags.items())], 0) if len(plain) > 2 else None
    options = {name: int(flags[name]) for name in ("judged_below", "rows_late_applied") if name in flags}
    options |= {"first_on_time": int(flags["on_time"])} if "on_time" in flags else {}
    return Ingested(fence_of("ingest", plain[0], plain[1]), batch, None, **options)


def _certified(state: Arrangement, plain: list[str], flags: Words) -> Change:
    gate = Gate(plain[0])
    upper = int(flags["upper"]) if "upper" in flags else None
    return Certified(gate, flags.get("suite") or state.collection.suite(gate), tuple(plain[1:]), upper)


def _redefined(state: Arrangement, plain: list[str], flags: Words) -> Change:
    changed = declared({"envelope": state.collection.landed.source.envelope} | flags)
    return Redefined(changed)


def words_of(flags: Words) -> list[str]:
    return [f"{name}={value}" for name, value in flags.items()]


CHANGES: dict[str, Callable[[Arrangement, list[str], Words], Change]] = {
    "attempted": lambda state, plain, flags: Attempted(fence_of(*plain)),
    "ingested": _ingested,
    "refused": lambda state, plain, flags: Refused(run_of(plain[2]), fence_of("ingest", plain[0], plain[1])),
    "certified": _certified,
    "sealed": lambda state, plain, flags: Sealed(
        int(plain[0]),
        int(flags.get("complete_below", plain[0])),
        int(flags.get("requested_seal", flags.get("complete_below", plain[0]))),
    ),
    "drained": lambda state, plain, flags: Drained(
        fence_of("drain", plain[0], plain[1]),
        trace_batch(plain[2:]),
        opened=tuple(name for name in flags.get("opened", "").split("+") if name),
        ahead=several(flags.get("ahead", "")),
    ),
    "ahead_merged": lambda state, plain, flags: AheadMerged(
        fence_of("settle", plain[0], plain[1]), tuple(flags["of"].split("+")), several(flags["into"])
    ),
    "compacted": lambda state, plain, flags: Compacted(
        fence_of("compact", plain[0], plain[1]),
        tuple(flags["of"].split("+")),
        trace_batch([*plain[2:], *words_of(flags)]),
    ),
    "merged": lambda state, plain, flags: LedgerMerged(tuple(flags["of"].split("+")), run_of(plain[0])),
    "quarantined": lambda state, plain, flags: Quarantined(plain[0], run_of("freed-" + plain[0])),
    "released": lambda state, plain, flags: Released(plain[0], run_of("claimed-" + plain[0])),
    "allowed": lambda state, plain, flags: CompactionAllowed(
        int(plain[0]), rungs_of(flags.get("rungs", "")), int(flags.get("now", 0))
    ),
    "placed": lambda state, plain, flags: HoldPlaced(hold_of(plain)),
    "dropped": lambda state, plain, flags: HoldDropped(plain[0]),
    "trimmed": lambda state, plain, flags: Trimmed(
        fence_of("trim", plain[0], plain[1]),
        replace(unsealed_batch([*plain[2:], *words_of(flags)], 0), parts=ref(flags["to"]), trimmed=True),
        ref(flags["of"]),
        int(flags.get("horizon", 0)),
    ),
    "remembered": lambda state, plain, flags: Remembered(
        fence_of("remember", plain[0], plain[1]),
        tuple(flags["of"].split("+")),
        replace(unsealed_batch([*plain[2:], *words_of(flags)], 0), level=int(flags["level"])) if plain[2:] else None,
        int(flags.get("horizon", 0)),
    ),
    "redefined": _redefined,
}

"""Batching windows, the rate monitor, the memory budget and compaction, by the flawed design that the vectors mend.

Compactions are the real ones: the retention's plan, the transition that allows it, and the merge of the trace. A delta
of the vectors is a row whose multiplicity is its value, so that composing deltas is adding up diffs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.conformance.fields import check_known
from tests.conformance.plain import COLLECTION, plain_rows, read
from tests.conformance.stand import Stand, applied
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.batching.cutting import Batching, Cutter, Open
from tidemark.model.batching.length import Adaptive
from tidemark.model.batching.memory import Budget, Level, Usage
from tidemark.model.batching.rate import SECOND, RateMonitor
from tidemark.model.batching.reason import Reason
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.model.retention import Retention
from tidemark.plan.compact import CompactionRequest, allowed
from tidemark.plan.retain import plan_retention
from tidemark.storage.sidecars import parts_table

Case = dict[str, Any]
Deltas = list[list[int]]

DEFAULTS = {"min_s": 0.01, "max_s": 5.0, "target": 100}
"""The design's own: 10 ms, 5 s, 100 rows."""
_BESIDE = {"why", "columns", "cases"}
_STEP = ("take", "release_all", "correct", "level", "expect", "used", "used_correct", "why")
_NOTHING = ("no change", "none", "no_change", "nothing", "not needed", "not_needed", False)


def run(case: Case) -> None:
    """A case of `triggers`: lengths, rates, or a count for each key."""
    if "script" in case:
        return count_trigger(case)
    for one in case["cases"]:
        (_refused if "expect" in one else _length if "seconds" in one else _rate)(case, one)


def _length(case: Case, one: Case) -> None:
    check_known(case, {*_BESIDE, *DEFAULTS})
    check_known(one, {"rate", "seconds", "why", *DEFAULTS})
    found = _adaptive(case, one).length(one["rate"]) / SECOND
    assert found == one["seconds"], f"at {one['rate']} rows/s: expected {one['seconds']} s, found {found}"


def _refused(case: Case, one: Case) -> None:
    check_known(case, {*_BESIDE, *DEFAULTS})
    check_known(one, {"expect", "why", *DEFAULTS})
    try:
        _adaptive(case, one)
    except InvalidUsage:
        assert str(one["expect"]).startswith("error"), f"expected {one['expect']}, it is refused"
    else:
        raise AssertionError(f"expected {one['expect']}, it is declared")


def _adaptive(case: Case, one: Case) -> Adaptive:
    settings = {**DEFAULTS, **case, **one}
    return Adaptive(round(settings["min_s"] * SECOND), round(settings["max_s"] * SECOND), settings["target"])


def _rate(case: Case, one: Case) -> None:
    check_known(case, {*_BESIDE, "window_s", "floor_s"})
    check_known(one, {"arrivals", "now", "correct", "why", "window_s", "floor_s"})
    settings = {"window_s": 10, "floor_s": 1, **case, **one}
    monitor = RateMonitor(_time(settings["window_s"]), _time(settings["floor_s"]))
    for at, rows in one["arrivals"]:
        monitor = monitor.arrived(_time(at), rows)
    found, expected = monitor.rate(_time(one["now"])), one["correct"]
    alike = found == expected or (None not in (found, expected) and math.isclose(found or 0, expected, rel_tol=1e-3))
    assert alike, f"{one['arrivals']} at {one['now']}: expected {expected}, found {found}"


def _time(seconds: float) -> int:
    return round(seconds * SECOND)


def count_trigger(case: Case) -> None:
    """Batches of a key each: one that is cut gives the sum of its values, and begins again where it is purged."""
    check_known(case, {"window", "trigger", "script", "accumulation", "emit_columns"})
    said = re.fullmatch(r"count (\d+)(?:, (purge)(?: on fire)?)?", case["trigger"])
    assert said, f"trigger {case['trigger']!r} is not known"
    purges = bool(said[2]) or case.get("accumulation") == "discarding"
    cutter, batches, sums = Cutter.of(Batching(count=int(said[1]))), dict[str, Open](), dict[str, int]()
    for number, step in enumerate(case["script"], start=1):
        check_known(step, {"record", "emit"})
        key, value, time = step["record"]
        batches[key] = _with_a_row(batches.get(key, Open(time)))
        sums[key] = sums.get(key, 0) + value
        cutter, cut = cutter.cut(batches[key], time)
        emitted = []
        if cut is not None:
            assert cut.reason is Reason.COUNT
            emitted = [[key, sums[key]]]
            del batches[key]
            sums[key] = 0 if purges else sums[key]
        assert emitted == step.get("emit", []), f"step {number}: expected {step.get('emit', [])}, found {emitted}"


def _with_a_row(batch: Open) -> Open:
    return replace(batch, rows=batch.rows + 1)


def run_adr(case: Case) -> None:
    """A case of `adr`: what is right where the design is not."""
    kind = next((kind for kind in ADR if re.match(kind, case["id"])), None)
    assert kind, f"adr case {case['id']} is not known"
    ADR[kind](case)


def time_boundary(case: Case) -> None:
    """Each bucket of an interval is composed, at its last instant; a read there is what it was."""
    check_known(
        case,
        {"interval", "interval_ms", "deltas", "true_total", "correct", "as_of_checks", "why", "columns", *_adr(case)},
    )
    interval, deltas = case.get("interval_ms", case.get("interval")), case.get("deltas", [])
    shift = _shift(deltas, interval)
    moved = [[time + shift, value] for time, value in deltas]
    rows, function = compacted(moved, Retention("time_boundary", interval=interval), interval)
    rows = [[time - shift, value] for time, value in rows]
    total = sum(value for _, value in deltas)
    assert sum(value for _, value in rows) == case.get("true_total", total) == total
    if "correct" in case:
        assert rows == case["correct"], f"expected {case['correct']}, found {rows}"
    for check in [*case.get("as_of_checks", ()), *({"as_of": time, "total": None} for time, _ in rows)]:
        at = check["as_of"]
        assert function.keeps(at + shift), f"as of {at} cannot be read"
        found, before = (sum(value for time, value in some if time <= at) for some in (rows, deltas))
        assert found == before == (before if check["total"] is None else check["total"]), f"as of {at}: {found}"


def buckets(case: Case) -> None:
    """The bucket of a time, also before the epoch: ours count from it, so that times are moved by whole buckets."""
    check_known(case, {"interval", "interval_ms", "times", "floor_bucket", "correct", "why", *_adr(case)})
    interval = case.get("interval_ms", case.get("interval"))
    shift = _shift([[time, 0] for time in case["times"]], interval)
    upper = (max(case["times"]) + shift) // interval * interval + interval
    function = CompactionFunction(upper, (Rung(0, interval),))
    ends = [function(time + shift) - shift for time in case["times"]]
    found = [(end + 1) // interval - 1 for end in ends]
    expected = case.get("floor_bucket", case.get("correct"))
    assert all(end >= time for end, time in zip(ends, case["times"], strict=True))
    assert found == expected, f"expected {expected}, found {found}"


def _shift(deltas: Deltas, interval: int) -> int:
    """Whole buckets by which times are moved to be behind the epoch."""
    first = min((time for time, _ in deltas), default=0)
    return max(0, -(first // interval)) * interval


def tiered(case: Case) -> None:
    """The newest deltas are kept, those before are one. Between two seals is one delta, so one seal more is kept."""
    check_known(
        case,
        {
            "keep_recent",
            "deltas",
            "pending",
            "oldest_age_s",
            "time_threshold_s",
            "correct",
            "needed",
            "total",
            "why",
            *_adr(case),
        },
    )
    deltas = case.get("deltas", case.get("pending", 0))
    if isinstance(deltas, int):
        deltas = [[number, 1] for number in range(1, deltas + 1)]
    deltas = sorted(deltas)
    retention = Retention("tiered", keep_recent=case["keep_recent"] + 1)
    expected = case.get("correct", case.get("needed"))
    if not isinstance(expected, dict):
        aged = case.get("oldest_age_s", 1) >= case.get("time_threshold_s", 0)
        needed = aged and plan_retention(_state(deltas, retention), now=0) is not None
        assert needed != (expected in _NOTHING), f"expected {expected}, found {'needed' if needed else 'no change'}"
        return
    rows, function = compacted(deltas, retention)
    through, kept = expected["checkpoint"]["through"], expected["kept"]
    composed = sum(function(time) == function.since for time, _ in deltas)
    found = {
        "value": sum(value for time, value in rows if time <= function.since),
        "through": function.since,
        "composed": composed,
    }
    assert found == expected["checkpoint"], f"expected {expected['checkpoint']}, found {found}"
    assert [row for row in rows if row[0] > through] == kept
    assert sum(value for _, value in rows) == case.get("total", sum(value for _, value in deltas))


def full_merge(case: Case) -> None:
    """Times below since go there; where there is nothing, nothing changes."""
    check_known(case, {"deltas", "since", "pending", "correct", "why", *_adr(case)})
    deltas = case.get("deltas", [])
    if "since" not in case:
        change = plan_retention(_state(deltas, Retention("full_merge")), now=0)
        assert (change is None) == (case.get("correct", "no change") in _NOTHING)
        return
    rows = _merged(deltas, CompactionFunction(case["since"]))
    expected = sorted(deltas) if case["correct"] in _NOTHING else case["correct"]
    assert rows == expected, f"expected {expected}, found {rows}"


def budget_sum(case: Case) -> None:
    """The shares add up to what they do, and one maximum below that still holds."""
    check_known(case, {"components_mib", "sum", "correct", "why", *_adr(case)})
    shares = {str(number): size for number, size in enumerate(case["components_mib"])}
    budget = Budget(max(case["components_mib"]), shares)
    assert sum(budget.shares.values()) == case.get("sum", case.get("correct"))
    usage = Usage(budget)
    for name, size in shares.items():
        usage = usage.reserved(name, min(size, usage.largest(name))) or usage
    assert usage.used <= budget.most


def memory_guard(case: Case) -> None:
    """Reservations one after the other: which level each reached, or that it was refused, and what is used then."""
    known = {
        "max",
        "max_bytes",
        "high",
        "emergency",
        "levels",
        "steps",
        "take",
        "release_all",
        "used",
        "correct",
        "used_correct",
        "why",
    }
    check_known(case, {*known, *_adr(case)})
    most = case.get("max", case.get("max_bytes"))
    high, emergency = (
        mark / most if mark > 1 else mark for mark in (case.get("high", 0.8), case.get("emergency", 0.95))
    )
    usage, reserved, levels = Usage(Budget(most, high=high, emergency=emergency)), list[int](), list[str]()
    for size, expected in _takes(case):
        if size is None:
            for each in reserved:
                usage = usage.released("guard", each)
            reserved = []
        else:
            word, after = _reserved(usage, size)
            reserved, usage = ([*reserved, size], after) if after is not None else (reserved, usage)
            levels.append(word)
            assert expected is None or _is(expected, word), f"take {size}: expected {expected}, found {word}"
        _check_used(expected if isinstance(expected, dict) else {}, usage)
    words = case.get("levels", case.get("correct"))
    if isinstance(words, list):
        alike = len(words) == len(levels) and all(map(_is, words, levels))
        assert alike, f"expected {words}, found {levels}"
    _check_used(case, usage)


def _reserved(usage: Usage, size: int) -> tuple[str, Usage | None]:
    """The result of a reservation, in a word, and what is used then: nothing more where it was refused."""
    try:
        after = usage.reserved("guard", size)
    except InvalidUsage:  # whatever else is given back, it will not fit
        return "never", None
    return (after.level, after) if after is not None else ("refused", None)


def _is(expected: Any, found: str) -> bool:
    """Whether a word is what was found. What never fits is refused, too."""
    word = _level(expected)
    return word is None or word == found or (word, found) == ("refused", "never")


def _takes(case: Case) -> Iterator[tuple[int | None, Any]]:
    """What is taken in turn, with what is expected of it; None gives all back."""
    for step in case.get("steps", [case]):
        if isinstance(step, list):
            step = dict(zip(("take", "correct"), step, strict=False))
        if step is not case:
            check_known(step, {*_STEP, *_adr(step)})
        sizes = step.get("take", [])
        expected = (
            None
            if step is case
            else next((step[name] for name in ("correct", "level", "expect") if name in step), None)
        )
        for size in sizes if isinstance(sizes, list) else [sizes]:
            yield size, expected
        if step.get("release_all"):
            yield None, {name: step[name] for name in ("used_correct", "used") if name in step}


def _check_used(stated: Case, usage: Usage) -> None:
    expected = stated.get("used_correct", stated.get("used"))
    assert expected is None or usage.used == expected, f"expected {expected} used, found {usage.used}"


def _level(word: Any) -> str | None:
    """How the vectors may call a level, as ours."""
    if isinstance(word, dict):
        return None if not (inner := word.get("level")) else _level(inner)
    if re.match("never|impossible|too (big|large)", str(word).lower()):
        return "never"
    known = {Level.LOW: "low|normal|none|ok", Level.MEDIUM: "medium|moderate|elevated", Level.HIGH: "high|warning"}
    known |= {Level.EMERGENCY: "emergency|critical"}
    found = next((level for level, words in known.items() if re.fullmatch(words, str(word).lower())), None)
    return found or ("refused" if re.match("refus|reject|error|full", str(word).lower()) else str(word))


def compacted(deltas: Deltas, retention: Retention, interval: int = 1) -> tuple[Deltas, CompactionFunction]:
    """The deltas after the compaction that a retention plans where all of them are complete, and its function."""
    state = _state(deltas, retention, interval)
    change = plan_retention(state, now=0)
    state = state if change is None else applied(state, change)
    return _merged(deltas, allowed(state)), allowed(state)


def _state(deltas: Deltas, retention: Retention, interval: int = 1) -> Arrangement:
    """Each delta was sealed on its own."""
    complete = (max((time for time, _ in deltas), default=-1) // interval + 1) * interval
    seals = tuple(sorted({time + 1 for time, _ in deltas}))[-retention.recent :] if retention.recent else ()
    return Arrangement(replace(COLLECTION, retention=retention), complete_below=complete, seal=complete, seals=seals)


def _merged(deltas: Deltas, function: CompactionFunction) -> Deltas:
    """The real merge of two neighbouring batches that hold the deltas."""
    stand, half = Stand(), len(deltas) // 2
    ordered = sorted(deltas)
    upper = max([function.since, *(time + 1 for time, _ in deltas), 2])
    middle = ordered[half][0] if half > 0 and ordered[half][0] > 0 else 1
    bounds = [Description(0, middle), Description(middle, upper)]
    some = [[d for d in ordered if d[0] < middle], [d for d in ordered if d[0] >= middle]]
    rows = [[["k", "v", time, value] for time, value in each if value] for each in some]
    inputs = tuple(stand.trace(at, 0, [each] if each else []) for at, each in zip(bounds, rows, strict=True))
    request = CompactionRequest(inputs, Description(0, upper, function.since, function.rungs))
    state = Arrangement(
        COLLECTION, complete_below=upper, seal=upper, since=function.since, rungs=function.rungs, trace=inputs
    )
    _, change = stand.merged(state, request)
    return [
        [time, diff]
        for _, _, time, diff in plain_rows(read(stand.store, parts_table.parts_of(stand.store, [change.batch])))
    ]


def _adr(case: Case) -> set[str]:
    """What the flawed design does."""
    return {name for name in case if name.startswith("adr") or "_adr" in name}


ADR: dict[str, Callable[[Case], None]] = {
    "time_boundary_neg": buckets,
    "time_boundary": time_boundary,
    "tiered": tiered,
    "full_merge": full_merge,
    "budget": budget_sum,
    "memory|guard": memory_guard,
}
"""By how the id begins."""
KINDS = {"triggers": run, "adr": run_adr}

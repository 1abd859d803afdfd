"""What gates cost: the first ones in a process, later ones, and those in forks of a warm process (as the resident
launcher has them), what of them is judging, and what Great Expectations takes if it is asked about everything (as the
daily audit asks it), beside plain Python that decides the same rules over the same figures.

Days of upserts are ingested, sealed and drained, each step with its gate, in one process and on local files; two
entries of `quality:` are among the checks. CPU seconds are those of the process that runs the gate, medians over the
days. A gate asks Great Expectations about the two entries of `quality:` only, so gates without such, and the other
gates, never import it. Plain Python is the least that judging could cost: it has no report to make, and knows the
expectations used here only. AssertionError if two of them disagree over a day, or over a last one with a wrong row.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.feed import Feed, write_day
from benchmarks.measure import in_fresh_process, timed
from benchmarks.steps import Bench, silent
from tidemark.errors import GateFailed
from tidemark.jobs.job import Job
from tidemark.jobs.steps import gate as gate_job
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Gate
from tidemark.model.interval import Interval
from tidemark.plan.gate import plan_gate
from tidemark.quality import prepared
from tidemark.quality.evidence import Evidence
from tidemark.quality.expectations import OwnerExpectation, owner_expectations
from tidemark.quality.gates import GATES, Seen
from tidemark.quality.rows import pandas_rows
from tidemark.quality.validation import Validator

DAYS = 12
FORKED_DAYS = 5
ROWS = 1_000
KEYS = 10_000
REPEATED = 5
QUALITY = (
    {"expect_column_values_to_not_be_null": {"column": "amount"}},
    {"expect_column_value_lengths_to_be_between": {"column": "label", "min_value": 1, "max_value": 40}},
)


@dataclass(frozen=True)
class Looked:
    """What a gate is about to judge."""

    evidence: Evidence
    owners: tuple[OwnerExpectation, ...]
    frame: Any


def gates(seed: int, days: int = DAYS, forked: int = FORKED_DAYS) -> dict[str, Any]:
    """The CPU seconds of each gate."""
    answer: dict[str, Any] = in_fresh_process(_gates, seed, days, forked)
    return answer


def _gates(seed: int, days: int, forked: int) -> dict[str, Any]:
    with timed() as imported:
        prepared.great_expectations()
    feed = Feed(Envelope.UPSERT, days + forked + 1, ROWS, KEYS, seed)
    spent: dict[Gate, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        collection = replace(feed.collection, quality=tuple(map(json.dumps, QUALITY)))
        bench = Bench(collection, Path(folder, "root"), Path(folder, "landing"), measure=timed, note=silent)
        for day in range(days + forked):
            if day == days:
                gc.freeze()  # as the resident launcher does before it forks
            table = feed.drawn[day].table(feed.envelope)
            for gate in _steps(bench, feed.interval(day), table):
                looked = _looked(bench.job, gate)
                way, cost = ("gate", _here) if day < days else ("forked", _in_fork)
                costs = {way: cost(lambda gate=gate: gate_job.gate(bench.job, gate)), **_judged(looked)}
                for what, seconds in costs.items():
                    spent.setdefault(gate, {}).setdefault(what, []).append(seconds)
        _refused_alike(bench, feed, days + forked)
    return {
        "days": days,
        "forked_days": forked,
        "rows_per_day": ROWS,
        "seed": seed,
        "import_cpu_seconds": round(imported.cpu["driver"], 3),
        "gates": {str(gate): _figures(gate, of) for gate, of in spent.items()},
    }


def _figures(gate: Gate, spent: dict[str, list[float]]) -> dict[str, Any]:
    """Seconds; `first` is the first day's gate, which prepares its expectations, and is in no median."""
    owners = len(QUALITY) if gate is Gate.UNSEALED else 0
    later = {what: round(median(seconds[1:]), 5) for what, seconds in spent.items()}
    return {"checks": len(GATES[gate].rules) + owners, "first": round(spent["gate"][0], 5), **later}


def _steps(bench: Bench, interval: Interval, table: pa.Table) -> Iterator[Gate]:
    """The steps of a day; after each, the gate that is due."""
    write_day(bench.landing, interval, table)
    ingest(bench.job, interval, landing_root=str(bench.landing))
    yield Gate.UNSEALED
    seal(bench.job, interval)
    yield Gate.FRONTIER
    drain(bench.job, interval)
    yield Gate.TRACE


def _looked(job: Job, gate: Gate) -> Looked:
    head = job.log.load()
    request = plan_gate(head.state, gate)
    assert request is not None
    batches, runner = (*request.unsealed, *request.trace), job.runner()
    found = gate_job._inspected(job, runner, head.state, batches) if batches else {}
    owners = owner_expectations(head.state.collection) if gate is Gate.UNSEALED else ()
    parts = [part for of in found.values() for part in of.parts]
    frame = pandas_rows(job.store, parts, head.state.collection) if owners else None
    seen = Seen(head.state, request, found, lambda: gate_job._recent(job, head.state))
    return Looked(GATES[gate].evidence(seen), owners, frame)


def _judged(looked: Looked) -> dict[str, float]:
    """What judging alone costs: as a gate does it, its built-in rules alone, all by Great Expectations, plainly."""
    ways: dict[str, Callable[[Looked], list[bool]]] = {
        "judging": lambda looked: _by(Validator(), looked),
        "great_expectations": lambda looked: _by(Validator(always_asks=True), looked),
        "plain": _plainly,
        "rules": lambda looked: _by(Validator(), replace(looked, owners=())),
    }
    spent, verdicts = {}, {}
    for name, judge in ways.items():
        costs = []
        for _ in range(REPEATED):
            with timed() as cost:
                verdicts[name] = judge(looked)
            costs.append(cost.cpu["driver"])
        spent[name] = median(costs)
    rules = verdicts.pop("rules")
    if any(each != verdicts["plain"] or each[: len(rules)] != rules for each in verdicts.values()):
        raise AssertionError(f"{looked.evidence.gate} gate: the judges disagree: {verdicts}")
    return spent


def _by(validator: Validator, looked: Looked) -> list[bool]:
    verdicts = validator.judge_evidence(GATES[looked.evidence.gate].rules, looked.evidence)
    verdicts += validator.judge_rows(looked.owners, looked.frame) if looked.owners else []
    return [verdict.passed for verdict in verdicts]


def _plainly(looked: Looked) -> list[bool]:
    rules = [(rule.expectation, rule.arguments) for rule in GATES[looked.evidence.gate].rules]
    owners = [(owner.name, owner.judged) for owner in looked.owners]
    verdicts = [all(_holds(name, of, row) for row in looked.evidence.rows) for name, of in rules]
    for name, of in owners:
        verdicts.append(all(_holds(name, of, {of["column"]: value}) for value in looked.frame[of["column"]].tolist()))
    return verdicts


def _holds(name: str, of: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    if "column_A" in of:
        left, right = row[of["column_A"]], row[of["column_B"]]
        if of["ignore_row_if"] == "either_value_is_missing" and (left is None or right is None):
            return True
        return bool(left == right if name == "expect_column_pair_values_to_be_equal" else left >= right)
    value = row[of["column"]]
    if name == "expect_column_values_to_be_null":
        return value is None
    if name == "expect_column_values_to_not_be_null":
        return value is not None
    if value is None:
        return True
    measure = len(value) if name == "expect_column_value_lengths_to_be_between" else value
    return bool(of.get("min_value", measure) <= measure <= of.get("max_value", measure))


def _refused_alike(bench: Bench, feed: Feed, day: int) -> None:
    """One row with a label that is too long: both judges refuse the day, for that alone, and so does the gate."""
    table = feed.drawn[day].table(feed.envelope)
    labels = pa.array(["x" * 41 if row == 7 else label for row, label in enumerate(table["label"].to_pylist())])
    steps = _steps(bench, feed.interval(day), table.set_column(table.column_names.index("label"), "label", labels))
    gate = next(steps)
    looked = _looked(bench.job, gate)
    _judged(looked)
    if (verdicts := _plainly(looked)) != [True] * (len(verdicts) - 1) + [False]:
        raise AssertionError(f"with one label too long the checks say {verdicts}")
    try:
        gate_job.gate(bench.job, gate)
    except GateFailed:
        return
    raise AssertionError("the gate let a label pass that is too long")


def _here(work: Callable[[], Any]) -> float:
    with timed() as cost:
        work()
    return cost.cpu["driver"]


def _in_fork(work: Callable[[], Any]) -> float:
    """CPU seconds of a fork that does the work and nothing else."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    if status:
        raise AssertionError("a gate failed in a fork; see above")
    return used.ru_utime + used.ru_stime

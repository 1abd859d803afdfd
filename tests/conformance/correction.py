"""The correction buffer, step by step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.conformance.fields import check_known
from tests.conformance.steps import Step, perform, run_each
from tests.oracles.correction_buffer.buffer import CorrectionBuffer
from tests.oracles.correction_buffer.chain import Chain, Correction
from tests.oracles.correction_buffer.forwarding import Strategy, merged_by, runs, stale_times, strategy_for
from tests.oracles.correction_buffer.sizes import Sizes
from tidemark.errors import Corruption
from tidemark.model.correction_buffer.chain_rule import holds
from tidemark.model.frontier import EMPTY

Plain = list[Any]
"""An update of the vectors: [data, time, diff]."""

STRATEGIES = {
    Strategy.PLAIN_MERGE: r"(plain|simple|direct)?_?(k_?way)?_?(merge)?",
    Strategy.RUN_MERGE: r"(run|stale)s?(_k_?way)?(_merge)?|merge_runs",
    Strategy.MATERIALIZE: r"materiali[sz]e\w*",
}
"""How the vectors may call each way to merge."""
TEMPLATES = {
    "upsert4": lambda t: [
        row for k in range(4) for row in ([f"{k}-{t}", t, 1], *([[f"{k}-{t - 1}", t, -1]] if t > 0 else []))
    ],
}
"""Templates that have a name."""
FIELDS = {
    "insert": {"updates"},
    "insert_negated": {"updates"},
    "insert_generated": {"for_t", "template"},
    "drain_stepwise": {"for_t"},
    "advance_since": {"to"},
    "updates_before": {"upper"},
    "consolidate_before": {"upper"},
}
"""What the steps say that are more than their name."""


class Subject:
    """A buffer and the operations of the vectors upon it, by their names."""

    def __init__(self, config: dict[str, Any]) -> None:
        check_known(config, {"stage_capacity", "chain_proportionality"})
        given = {"chunk_rows": config.get("stage_capacity"), "proportionality": config.get("chain_proportionality")}
        sizes = Sizes(**{name: value for name, value in given.items() if value is not None})
        self.buffer: CorrectionBuffer[str] = CorrectionBuffer.empty(sizes)
        self.generated: dict[int, list[Plain]] = {}

    def insert(self, step: Step) -> None:
        self.buffer = self.buffer.inserted(rows_of(step["updates"]))

    def insert_negated(self, step: Step) -> None:
        self.buffer = self.buffer.inserted_negated(rows_of(step["updates"]))

    def insert_generated(self, step: Step) -> None:
        for t in range(*step["for_t"]):
            rows = generated(step["template"], t)
            self.generated.setdefault(t, []).extend(rows)
            self.insert({"updates": rows})

    def drain_stepwise(self, step: Step) -> dict[str, bool]:
        """Whether what was generated for t came out at t, each time; if rows are listed, as a template, these did."""
        exact, listed = True, step.get("expect", {}).get("emitted_at_t")
        for t in range(*step["for_t"]):
            out, self.buffer = self.buffer.updates_before(t + 1)
            inserted = [[data, t, diff] for data, _, diff in self.generated.get(t, [])]
            wanted = generated(listed, t) if isinstance(listed, list) else inserted
            exact = exact and plain_rows(out) == summed(wanted)
            self.buffer = self.buffer.inserted_negated(out).advanced(t + 1)
        return {"emitted_at_t": exact}

    def advance_since(self, step: Step) -> None:
        try:
            self.buffer = self.buffer.advanced(self._frontier_of(step["to"]))
        except Corruption as error:
            # The empty frontier is the end of the buffer's own times, which the vectors call null as any other.
            params = tuple((name, EMPTY if value == self.buffer.end else value) for name, value in error.params)
            raise Corruption(str(error), error.rule, params) from error

    def updates_before(self, step: Step) -> list[Plain]:
        found, self.buffer = self.buffer.updates_before(self._frontier_of(step["upper"]))
        rows = plain_rows(found)
        assert rows == sorted(rows, key=_place), "rows are not ordered by time, then data"
        return rows

    def consolidate_before(self, step: Step) -> None:
        self.buffer = self.buffer.consolidated_before(self._frontier_of(step["upper"]))

    def consolidate_at_since(self, step: Step) -> None:
        self.buffer = self.buffer.consolidated_at_since()

    def layout(self, step: Step) -> dict[str, Any]:
        buffer = self.buffer
        return {
            "boundary": self._frontier(buffer.boundary),
            "since": self._frontier(buffer.since),
            "stage": len(buffer.stage),
            "pending_low": [chain.rows for chain in buffer.pending_low],
            "emitted": buffer.emitted.rows,
            "total": self._counted(),
            "bucket_count": len(buffer.buckets.buckets),
        }

    def bucket_chain_lengths(self, step: Step) -> list[list[int]]:
        stacks = [bucket.content for bucket in self.buffer.buckets.buckets if bucket.content.rows]
        return [[chain.rows for chain in stack.chains] for stack in stacks]

    def merge_strategy_used(self, step: Step) -> Strategy | None:
        return self.buffer.strategy

    def reported_record_count(self, step: Step) -> int:
        counted, reported = self._counted(), self.buffer.totals.records
        assert reported == counted, f"{reported} records are reported, {counted} are contained"
        return reported

    def _counted(self) -> int:
        """The rows contained, counted afresh."""
        buffer = self.buffer
        chains = [chain for bucket in buffer.buckets.buckets for chain in bucket.content.chains]
        return len(buffer.stage) + sum(len([*chain]) for chain in (*chains, *buffer.pending_low, buffer.emitted))

    def _frontier_of(self, value: int | None) -> int:
        return self.buffer.end if value is None else value

    def _frontier(self, time: int) -> int | None:
        return None if time == self.buffer.end else time


def run(case: dict[str, Any]) -> None:
    """Raise, naming the step, where one does not do what is expected of it."""
    check_known(case, {"config", "steps"})
    subject = Subject(case.get("config", {}))
    run_each(case["steps"], lambda step: _run_step(subject, step))


def _run_step(subject: Subject, step: Step) -> None:
    name = step["op"]
    check_known(step, {"op", "expect", *FIELDS.get(name, ())})
    expected = step.get("expect", {"ok": True})
    compare = _compare_strategy if name == "merge_strategy_used" else _compare
    perform(subject, name, step, expected, lambda found: compare(expected, found))


def _compare_strategy(expected: dict[str, Any], found: Strategy | None) -> None:
    check_known(expected, {"returns"})
    word = expected["returns"]
    fits = word is None if found is None else isinstance(word, str) and re.fullmatch(STRATEGIES[found], word)
    assert fits, f"expected {word}, found {found}"


def _compare(expected: dict[str, Any], found: Any) -> None:
    """What is expected by name: of a layout each of its names, of rows as ROWS says, else what is returned."""
    by_name = found if isinstance(found, dict) else {}
    check_known(expected, {"ok", "returns", "equals", *ROWS, *by_name})
    assert expected.get("ok", True) is True, "expected that it fails, it succeeded"
    for name, wanted in expected.items():
        if name in by_name:
            assert by_name[name] == wanted or _in_words(wanted, by_name[name]), (
                f"{name}: expected {wanted}, found {by_name[name]}"
            )
        elif name in ROWS:
            assert ROWS[name](found, expected), f"expected {name} {wanted}, found {found}"
        elif name in ("returns", "equals"):
            assert found == wanted or (name == "equals" and _in_words(wanted, True)), (
                f"expected {wanted}, found {found}"
            )


def _in_words(wanted: Any, found: Any) -> bool:
    """Whether a fact is stated in words, or at length, that the operation has found to be true: what a count equals,
    what came out at t."""
    return isinstance(wanted, str | list) and found is True


ROWS: dict[str, Callable[[list[Plain], dict[str, Any]], bool]] = {
    "returns_count": lambda rows, expected: len(rows) == expected["returns_count"],
    "all_time": lambda rows, expected: all(row[1] == expected["all_time"] for row in rows),
    "all_diff": lambda rows, expected: all(row[2] == expected["all_diff"] for row in rows),
    "data_template": lambda rows, expected: (
        sorted(row[0] for row in rows)
        == sorted(filled(expected["data_template"], t) for t in range(*expected["t_range"]))
    ),
    "t_range": lambda rows, expected: "data_template" in expected,
}
"""What may be said of rows that are too many to be listed."""


def merge_example(case: dict[str, Any]) -> None:
    """Chains, the runs they are cut into, and what these are merged to."""
    check_known(case, {"value", "expect"})
    value, expected = case["value"], case["expect"]
    chains = [Chain.of([*rows_of(value[name])]) for name in sorted(value) if name.startswith("chain")]
    check_known(value, {"since", *(name for name in value if name.startswith("chain"))})
    check_known(expected, {"runs", "merged"})
    since = value["since"]
    strategy = strategy_for(stale_times(chains, since))
    found = {
        "runs": [plain_rows(run) for chain in chains for run in runs(chain, since)],
        "merged": plain_rows(merged_by(strategy, chains, since)),
    }
    for name, wanted in expected.items():
        assert found[name] == wanted, f"{name}: expected {wanted}, found {found[name]}"


def chain_invariant(case: dict[str, Any]) -> None:
    """Whether chains of some sizes may stay as they are."""
    check_known(case, {"value"})
    for value in case["value"] if isinstance(case["value"], list) else [case["value"]]:
        check_known(value, {"proportionality", "sizes", "holds"})
        found = holds(value["sizes"], value["proportionality"])
        assert found == value["holds"], f"{value['sizes']}: expected {value['holds']}, found {found}"


def rows_of(updates: Iterable[Plain]) -> Iterator[Correction[str]]:
    return (Correction(time, data, diff) for data, time, diff in updates)


def plain_rows(rows: Iterable[Correction[str]]) -> list[Plain]:
    return [[row.data, row.time, row.diff] for row in rows]


def generated(template: Any, t: int) -> list[Plain]:
    """The rows of a template at t."""
    if isinstance(template, str):
        assert template in TEMPLATES, f"template {template} is not known"
        return TEMPLATES[template](t)
    return [[filled(data, t), t if time == "t" else time, diff] for data, time, diff in template]


def summed(rows: Iterable[Plain]) -> list[Plain]:
    """By time, then data; what adds up to nothing is left out."""
    sums: Counter[tuple[int, str]] = Counter()
    for data, time, diff in rows:
        sums[time, data] += diff
    return [[data, time, diff] for (time, data), diff in sorted(sums.items()) if diff]


def filled(text: str, t: int) -> str:
    return text.replace("{t}", str(t))


def _place(row: Plain) -> tuple[int, str]:
    return row[1], row[0]


KINDS = {"correction": run, "merge_example": merge_example, "chain_invariant": chain_invariant}

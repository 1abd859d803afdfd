"""Scripts of records, batches and watermarks, with what each step gives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.conformance.fields import check_known
from tests.conformance.window_answers import answered, unordered, windows_by_production
from tests.conformance.window_declared import LawOnly
from tests.conformance.window_words import KIND_FIELDS, Case, bounds_of, described, happened, rule_of
from tests.oracles.law.panes import Pane, Panes, Trigger
from tidemark.model.window.contents import Rule, rows_by_window
from tidemark.model.window.frozen_sessions import Revival
from tidemark.model.window.happened import consolidated
from tidemark.model.window.kinds import Session
from tidemark.model.window.lateness import Judged, judge
from tidemark.model.window.windows import Late

FIELDS = {
    *("script", "emit_columns", "lateness", "accumulation", "late_side_output", "trigger", "window", "mode", "delay"),
    *("dropped", "bounds", "grace"),
}
STEP_FIELDS = {"record", "watermark", "batch", "watermark_after", "emit", "dropped"}
RESTART = {"restart", "snapshot", "restore"}
"""Steps at which an engine is stopped and started: the state is a value, so that nothing is to be done."""


class Script:
    """What a script runs upon: panes, and the order of the words."""

    def __init__(self, name: str, case: Case) -> None:
        batches = any("batch" in step for step in case["script"])
        options: dict[str, Any] = {"late": Late.REEMIT, "max_lateness": case.get("lateness", 0)}
        if batches:
            options["revival"] = Revival.OWN_IS_JUDGED
        self.rule = rule_of(name, case, **options)
        self.columns: list[str] = case.get("emit_columns", ["key", "sum"])
        self.mode: str = case.get("mode", "")
        trigger = trigger_of(case.get("trigger"), self.mode)
        self.panes = Panes(self.rule, trigger, case.get("accumulation", "accumulating") != "discarding")
        if "purge" in (case.get("trigger") or ""):
            self.panes = Panes(self.rule, trigger, accumulating=False)
        self.delay: int = case.get("delay") or 0
        self.not_declared = _not_declared(case)
        self.closed: dict[Any, Any] = {}
        self.highest: int | None = None
        # Before the first watermark nothing is late: as if it stood before any record.
        self.watermark = -(2**61)
        self._advance(self.watermark)

    def step(self, step: Case) -> list[Pane]:
        """What one step gives."""
        given: list[Pane] = []
        records = [step["record"]] if "record" in step else step.get("batch", [])
        rows = [happened(record, self.close) for record in records]
        if rows:
            fired, self.panes = self.panes.with_rows(rows)
            given += fired
            self.highest = max(row.at for row in (*rows, *self.panes.rows) if row.at is not None)
        watermark = step.get("watermark")
        if step.get("watermark_after") is not None:
            watermark = self._frontier(step["watermark_after"]) - 1  # an engine's w is complete up to and with w
        if watermark is not None:
            given += self._advance(watermark)
        return [*self._all()] if "complete" in self.mode.lower() and records else given

    def came_by_production(self) -> list[list[Any]]:
        """The rows of closed windows that came with a step, as the collection of these windows has them: those of
        windows that closed, and those that changed. Raises LawOnly where production cannot answer."""
        if self.not_declared:
            raise LawOnly(self.not_declared)
        found = windows_by_production(self.rule, self.panes.rows, close=self.close)
        now = {(one["key"], one["window_start"], one["window_end"]): one for one in found if one["closed"]}
        before, self.closed = self.closed, now
        return [[one[name] for name in self.columns] for of, one in now.items() if before.get(of) != one]

    @property
    def judged(self) -> list[Judged]:
        return judge(self.rule, self.panes.rows)

    def _frontier(self, after: int) -> int:
        """Where a batch says the frontier is, the delay taken off: engines tell it so, or the newest time itself."""
        known = max(self.watermark + 1, 0)
        taken_off = after <= max(known, (self.highest or 0) - self.delay)
        return after if taken_off else after - self.delay

    def _advance(self, watermark: int) -> list[Pane]:
        """Engines tell a session's end as exclusive, and are done with it there, though a record at it still joins:
        what is their watermark for it is, by our bound, one later."""
        joins_at_end = isinstance(self.rule.kind, Session) and self.rule.kind.exact_gap_merges
        self.watermark, self.close = watermark, watermark + 1 + int(joins_at_end)
        fired, self.panes = self.panes.advanced(self.close)
        return fired

    def _all(self) -> Iterable[Pane]:
        """All windows with all their rows, however late these came."""
        for (key, window), rows in rows_by_window(Rule(self.rule.kind), self.panes.rows).items():
            yield Pane(key, window, tuple(rows))


def _not_declared(case: Case) -> str:
    """What a script says that no collection file can declare; empty where there is nothing."""
    if case.get("trigger"):
        return "no collection file declares a trigger"
    if "complete" in case.get("mode", "").lower():
        return "no collection file emits all windows again with each batch"
    if "update" in case.get("mode", "").lower():
        return "no collection file emits open windows, or closed ones again"
    if case.get("accumulation") == "discarding" and case.get("lateness"):
        return "no collection file has a window tell only what it did not tell before"
    return ""


def trigger_of(words: str | None, mode: str = "") -> Trigger:
    """`count N, purge on fire`, `every T of event time`, or when windows close; `update` tells each change."""
    if words is None:
        return Trigger(count=1) if "update" in mode.lower() else Trigger()
    if matched := re.fullmatch(r"count (\d+)(, (no )?purge( on fire)?)?", words):
        return Trigger(count=int(matched[1]))
    matched = re.fullmatch(r"every (\d+) ?(ms|s|milliseconds|seconds)?( of event[ -]time)?(, purge( on fire)?)?", words)
    assert matched, f"trigger {words} is not known"
    return Trigger(every=int(matched[1]) * (1000 if (matched[2] or "").startswith("s") else 1))


def run(name: str, case: Case) -> None:
    """Raise, naming the step, where one gives something else than it says."""
    check_known(case, FIELDS | KIND_FIELDS[name])
    script = Script(name, case)
    bounds = bounds_of(script.rule.kind)
    assert case.get("bounds", bounds) == bounds, f"bounds: expected {case['bounds']}, found {bounds}"
    for number, step in enumerate(case["script"], start=1):
        try:
            check_known(step, STEP_FIELDS | RESTART)
            if not RESTART & step.keys():
                _check_step(script, step)
        except Exception as error:
            raise AssertionError(f"step {number}: {type(error).__name__}: {error}") from error
    late = [[one.row.key, one.row.value, one.row.at] for one in script.judged if one.late_for_all]
    if "late_side_output" in case:
        assert sorted(late, key=str) == sorted(case["late_side_output"], key=str), f"late: {late}"
    if "dropped" in case:
        assert len(late) == _number_of(case["dropped"]), f"dropped: expected {case['dropped']}, found {late}"


def _check_step(script: Script, step: Case) -> None:
    batch = len(script.panes.rows)
    by_law = [[column_of(script.rule, pane, name) for name in script.columns] for pane in script.step(step)]
    given = answered(by_law, script.came_by_production, alike=unordered)
    wanted = step.get("emit", [])
    assert Counter(map(str, given)) == Counter(map(str, wanted)), f"expected {wanted}, found {given}"
    if "dropped" in step:
        late = [one.row for one in script.judged if one.late_for_all and one.row.batch == batch]
        assert len(late) == _number_of(step["dropped"]), f"dropped: expected {step['dropped']}, found {late}"


def column_of(rule: Rule, pane: Pane, name: str) -> Any:
    """One column of what a pane tells."""
    columns = described(rule, pane.key, pane.window, consolidated(pane.rows))
    assert name in columns, f"column {name} is not known"
    return columns[name]


def _number_of(dropped: Any) -> int:
    return len(dropped) if isinstance(dropped, list) else dropped

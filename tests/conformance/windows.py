"""Windows: records in the order they came, instants and the windows that hold them, signed updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from tests.conformance import window_script
from tests.conformance.fields import check_known
from tests.conformance.window_words import (
    KIND_FIELDS,
    Case,
    check_windows,
    compare,
    happened,
    kind_of,
    rule_of,
    told_of,
)
from tidemark.errors import InvalidUsage
from tidemark.model.window.bounds import Window, windows_at
from tidemark.model.window.close import is_kept
from tidemark.model.window.contents import Rule, contents, on_time
from tidemark.model.window.frozen_sessions import Revival
from tidemark.model.window.happened import Happened
from tidemark.model.window.kind import Hopping, Session, Sliding, WindowKind
from tidemark.model.window.lateness import behind, judge, lateness
from tidemark.model.window.sessions import merged, session_of
from tidemark.model.window.told import Id, Told, delta
from tidemark.model.window.windows import Late

RECORDS = {
    *("records", "windows", "sessions", "stream_time", "grace", "bounds", "in_grace", "lateness", "expect"),
    *("dropped_window_updates", "dropped_records", "partially_late_records"),
    *("pure_window_lateness", "record_lateness", "closed_is_final", "same_in"),
    *("emitted_on_close", "updates", "after_restart", "retention", "readable_after_retention", "sessions_unmerged"),
}
"""What the cases with records say, besides their kind."""
ENGINES = {"beam", "flink", "kafka", "spark"}


def run(name: str, case: Case) -> None:
    """Raise, saying what differs, where the modules do not do what the case says."""
    if str(case.get("expect", "")).startswith("error"):
        check_known(case, {"expect", "grace", "records", "bounds"} | KIND_FIELDS[name])
        assert _is_refused(name, case), f"expected {case['expect']}, it is declared"
    elif "cases" in case:
        check_known(case, {"cases"})
        for each in case["cases"]:
            _declared(name, each)
    elif "script" in case:
        window_script.run(name, case)
    elif "assign" in case:
        check_known(case, {"assign", "bounds", "grace"} | KIND_FIELDS[name])
        _assigned(name, case)
    else:
        check_known(case, RECORDS | KIND_FIELDS[name])
        _records(name, case)


def _is_refused(name: str, case: Case) -> bool:
    try:
        rule_of(name, {"gap": 1, "step": 1, "max_size": 1, **case})
        for record in case.get("records", ()):
            if case.get("gap") == "per record":
                Session(record["gap"])
    except InvalidUsage:
        return True
    return False


def _declared(name: str, case: Case) -> None:
    """What engines say of one declaration. What all refuse is refused; that rows between windows vanish, which some
    allow, has to be asked for; an offset is taken modulo the advance, which some refuse."""
    check_known(case, {"all", "ours", "grace"} | KIND_FIELDS[name] | ENGINES)
    words = [str(case[engine]) for engine in ("all", "ours", *ENGINES) if engine in case]
    refused = _is_refused(name, case)
    if "all" in case or "ours" in case:
        assert refused == str(case.get("ours", case.get("all"))).startswith("error"), f"refused: {refused}"
    elif any(word.startswith("allowed") for word in words):
        assert refused, "it is declared, though it leaves rows out and that was not asked for"
        assert not _is_refused(name, {**case, "sampling": True}), "it is refused, though it was asked for"
    else:
        kind = kind_of(name, case)
        assert isinstance(kind, Hopping), f"what {words} say of {kind} is not known"
        modulo = replace(kind, offset=kind.offset % kind.advance)
        for at in range(-2 * kind.size, 2 * kind.size):
            assert windows_at(kind, at) == windows_at(modulo, at), f"at {at}: {windows_at(kind, at)}"


def _assigned(name: str, case: Case) -> None:
    rule = rule_of(name, case)
    assert not isinstance(rule.kind, Sliding | Session), "windows of instants are asked of a kind that has none"
    for each in case["assign"]:
        check_known(each, {"time", "starts", "windows"})
        found = windows_at(rule.kind, each["time"], clamp_start_at_zero=rule.clamp_start_at_zero)
        if "starts" in each:
            assert [window.start for window in found] == each["starts"], f"at {each['time']}: found {found}"
        if "windows" in each:
            assert [[*window] for window in found] == each["windows"], f"at {each['time']}: found {found}"


class Stream:
    """Records in the order they came, each learned when the stream's time had come to be what it was with it. What has
    no key or no value is in no window, and time does not move by it."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.rows: list[Happened] = []
        self.without: list[int] = []
        self.time = -(2**61)
        for index, record in enumerate(records):
            row = happened(record, self.time, batch=index)
            if row.key is None or row.value is None or row.at is None:
                self.without.append(index)
                continue
            self.time = max(self.time, row.at)
            self.rows.append(row._replace(learned=self.time))


def _records(name: str, case: Case) -> None:
    if case.get("gap") == "per record":
        _gaps_of_records(case)
        return
    _bounds(kind_of(name, case), case.get("bounds"))
    # Kafka's sessions, which the vectors tell, merge with what was closed; `closed_is_final` is ours.
    told = {"revival": Revival.ALL_MERGE} if name == "session" and case.get("grace") is not None else {}
    rule, stream = rule_of(name, case, **told), Stream(case["records"])
    listed = case.get("windows", case.get("sessions"))
    if "stream_time" in case:
        assert stream.time == case["stream_time"], f"stream_time: found {stream.time}"
    if isinstance(case.get("lateness"), dict):
        _behind(case["lateness"], stream)
    pure = case.get("pure_window_lateness")
    if pure is not None:
        _pure(rule, stream, pure)
    if pure is None or pure.get("same_as_kafka", True):
        if listed is not None:
            check_windows(listed, all_told(rule, stream))
        _late(rule, stream, case)
        _emitted(rule, stream, case)
    if "record_lateness" in case:
        _record_lateness(rule, stream, case["record_lateness"])
    if "closed_is_final" in case:
        _closed_is_final(rule_of(name, case), stream, case["closed_is_final"])
    if "same_in" in case:
        _same_in(rule, stream, case["same_in"], listed or [])
    if "retention" in case or "readable_after_retention" in case:
        _readable(rule, stream, case["retention"], case.get("readable_after_retention"))
    if "after_restart" in case:
        _after_restart(name, case)


def _bounds(kind: WindowKind, words: str | None) -> None:
    found = "[start,end] both inclusive" if kind.inclusive else "[start,end)"
    assert words is None or words == found, f"bounds: expected {words}, found {found}"


def all_told(rule: Rule, stream: Stream) -> list[dict[str, Any]]:
    """All windows, with what is told of each, and whether it is closed."""
    return [
        told_of(rule, key, window, held) | {"closed": rule.closed(window.end, stream.time)}
        for (key, window), held in contents(rule, stream.rows).items()
    ]


def _late(rule: Rule, stream: Stream, case: Case) -> None:
    judged = judge(rule, stream.rows)
    late_for_all = [one.row.batch for one in judged if one.late_for_all]
    found = {
        "dropped_records": sorted([*late_for_all, *stream.without]),
        "partially_late_records": sorted(one.row.batch for one in judged if one.late_for_some),
        "dropped_window_updates": lateness(judged).window_updates_late + len(stream.without),
        "in_grace": not any(one.late for one in judged),
    }
    compare({field: case[field] for field in found if field in case}, found, "late")


def _pure(rule: Rule, stream: Stream, pure: Case) -> None:
    """Lateness by windows: what was late for whatever window could have held it is dropped."""
    check_known(pure, {"windows", "dropped_records", "same_as_kafka"})
    if "windows" in pure:
        check_windows(pure["windows"], all_told(rule, stream), "pure_window_lateness")
    if "dropped_records" in pure:
        dropped = sorted(one.row.batch for one in judge(rule, stream.rows) if one.refused)
        assert dropped == pure["dropped_records"], f"pure_window_lateness: dropped_records: found {dropped}"


def _record_lateness(rule: Rule, stream: Stream, told: Case) -> None:
    """Lateness by records: what is left is as if nothing had ever been late."""
    check_known(told, {"windows", "dropped_records", "same_as_kafka"})
    left = on_time(stream.rows, rule.grace)
    if "windows" in told:
        of = Stream(())
        of.rows, of.time = left, stream.time
        check_windows(told["windows"], all_told(replace(rule, late=Late.REEMIT, max_lateness=None), of), "record")
    if "dropped_records" in told:
        dropped = sorted({row.batch for row in stream.rows} - {row.batch for row in left})
        assert dropped == told["dropped_records"], f"record_lateness: dropped_records: found {dropped}"


def _closed_is_final(rule: Rule, stream: Stream, told: Any) -> None:
    told = told if isinstance(told, dict) else {"sessions": told}
    check_known(told, {"sessions", "windows", "dropped_records", "dropped_window_updates", "emitted_on_close"})
    listed = told.get("sessions", told.get("windows"))
    if listed is not None:
        check_windows(listed, all_told(rule, stream), "closed_is_final")
    _late(rule, stream, told)
    _emitted(rule, stream, told)


def _behind(told: Case, stream: Stream) -> None:
    """How late records came, as a metric."""
    check_known(told, {"max", "avg"})
    found = behind(stream.rows)
    compare(told, {"max": max(found), "avg": round(sum(found) / len(found), 2)}, "lateness")


def _same_in(rule: Rule, stream: Stream, engines: list[str], listed: list[Case]) -> None:
    """Beam alone keeps records apart that are exactly the gap apart: whose sessions are these then?"""
    assert isinstance(rule.kind, Session), "same_in is told of sessions"
    assert set(engines) <= ENGINES, f"same_in {engines} is not known"
    if others := [engine for engine in engines if engine != "beam"]:
        merging = replace(rule, kind=replace(rule.kind, exact_gap_merges=True))
        check_windows(listed, all_told(merging, stream), f"same_in {others}")
    if "beam" in engines:
        apart = replace(rule, kind=replace(rule.kind, exact_gap_merges=False))
        check_windows(listed, all_told(apart, stream), "same_in beam")


def _readable(rule: Rule, stream: Stream, retention: int, readable: list[Any] | None) -> None:
    if readable is None:
        return
    kept = [one for one in all_told(rule, stream) if is_kept(Window(one["start"], 0), stream.time, retention)]
    if all(isinstance(one, dict) for one in readable):
        check_windows(readable, kept, "readable_after_retention")
        return
    found = [_as_told(one, kept_one) for one, kept_one in zip(readable, kept, strict=False)]
    assert len(kept) == len(readable), f"readable: {kept}"
    assert Counter(map(str, found)) == Counter(map(str, readable)), f"readable: {kept}"


def _as_told(like: Any, told: dict[str, Any]) -> Any:
    """What is told of a window, in the form of another: its start, or key, start and end."""
    row = [told["key"], told["start"], told["end"], *([told["values"]] if isinstance(like, list) else [])]
    return row[: len(like)] if isinstance(like, list) else told["start"]


def _gaps_of_records(case: Case) -> None:
    """Records with a gap each: their own intervals, and what these merge to."""
    exact = case.get("exact_gap_merges", True)
    own: dict[Any, list[Window]] = {}
    for record in case["records"]:
        at = record["time"]
        own.setdefault(record["key"], []).append(session_of(Session(record["gap"], exact), (at, at)))
    for name, unmerged in (("sessions_unmerged", True), ("sessions", False)):
        if name not in case:
            continue
        found = [
            {"key": key, "start": start, "end": end, "end_exclusive": end, "count": _within(case, key, start, end)}
            for key, intervals in own.items()
            for start, end in (intervals if unmerged else merged(intervals, exact_gap_merges=exact))
        ]
        listed = [one if isinstance(one, dict) else _interval(one) for one in case[name]]
        if unmerged:
            found = [{**one, "count": 1} for one in found]
        check_windows(listed, found, name)


def _interval(told: list[Any]) -> Case:
    names = ("key", "start", "end") if len(told) == 3 else ("start", "end")
    return dict(zip(names, told, strict=True))


def _within(case: Case, key: Any, start: int, end: int) -> int:
    return sum(1 for record in case["records"] if record["key"] == key and start <= record["time"] < end)


def _emitted(rule: Rule, stream: Stream, case: Case) -> None:
    """What is told as windows close, one record after the other. A run that is killed after any record, and runs again,
    tells nothing twice: told again from what was held it gives the same, told on from it nothing."""
    told, rows = Told(), list[Happened]()
    for row in stream.rows:
        rows.append(row)
        told = _told_once(rule, rows, told, row.learned)
    if "emitted_on_close" in case:
        _each_once(rule, stream, case["emitted_on_close"], told)
    if "updates" in case:
        _last_updates(rule, stream, case["updates"])


def _last_updates(rule: Rule, stream: Stream, updates: list[Any]) -> None:
    """The last update of each window is its row; one that is null, or of a session that another took in, is gone."""
    last = {(row["key"], row["start"], row.get("end")): row for row in map(_row, updates)}
    found = {(one["key"], one["start"], one["end"]): one for one in all_told(rule, stream)}
    for at, row in last.items():
        if row.get("values", ()) is None:
            assert at not in found, f"updates: {row} is there"
        elif at in found or not isinstance(rule.kind, Session):
            assert at in found, f"updates: {row} is not there"
            compare(row, found[at], "updates")
        else:
            around = [one for one in found.values() if one["start"] <= row["start"] <= row["end"] <= one["last"]]
            assert [one for one in around if one["key"] == row["key"]], f"updates: {row} was taken in by none"
    assert found.keys() <= last.keys(), f"updates: none of {found.keys() - last.keys()}"


def _after_restart(name: str, case: Case) -> None:
    """What is there after a run was stopped, and more records came; or the rows that are told then."""
    after = case["after_restart"]
    told = after if isinstance(after, dict) else {"emitted_on_close": after} if isinstance(after, list) else {}
    check_known(told, RECORDS - {"after_restart"})
    whole = {field: value for field, value in case.items() if field in KIND_FIELDS[name] | {"grace", "bounds"}}
    _records(name, {**whole, **told, "records": [*case["records"], *told.get("records", ())]})


def _told_once(rule: Rule, rows: list[Happened], told: Told, close: int) -> Told:
    closed: dict[Id, Any] = {
        (key, window): frozenset(held.items())
        for (key, window), held in contents(rule, rows).items()
        if rule.closed(window.end, close)
    }
    signed, after = told.tell(closed)
    again, same = told.tell(closed)
    assert (signed, after) == (again, same), "a run that is killed and runs again tells something else"
    assert not after.tell(closed)[0], "a window is told twice"
    come = Counter((one.key, one.window, one.revision) for one in signed if one.diff > 0)
    assert all(count == 1 for count in come.values()), f"told twice: {come}"
    return after


def _each_once(rule: Rule, stream: Stream, listed: list[Any], told: Told) -> None:
    """The rows that were told, after an advance to the end of the stream: up to its time, and past it where windows are
    listed that are open then."""
    wanted = [*map(_row, listed)]
    closed = [one for one in all_told(rule, stream) if one["closed"]]
    assert {(key, *window) for key, window in told.rows} == {_place(rule, one) for one in closed}, "not told as closed"
    found = closed if len(wanted) <= len(closed) else all_told(rule, stream)
    check_windows(wanted, found, "emitted_on_close")


def _place(rule: Rule, one: dict[str, Any]) -> tuple[Any, ...]:
    return one["key"], one["window_start"], one["window_end"]


def _row(told: Any) -> Case:
    """A row as it was told: by names, or [key, start, end, values joined by +, the newest time]."""
    if isinstance(told, dict):
        return {name: value for name, value in told.items() if name != "closed"}
    names = ("key", "start", "end", "values", "max_time")
    row = dict(zip(names, told, strict=False))
    if isinstance(row.get("values"), str):
        row["values"] = row["values"].split("+")
    elif isinstance(row.get("values"), int):
        row["count"] = row.pop("values")
    return row


def retractions(case: Case) -> None:
    """Signed updates, then more of them: the windows before and after, and by what they differ."""
    fields = {"updates", "then", "state_before", "state_after", "output_delta", "output_delta_columns", "bounds"}
    check_known(case, fields | KIND_FIELDS[case["kind"]])
    rule = rule_of(case["kind"], case)
    before = [happened(update, 0) for update in case["updates"]]
    after = [*before, *(happened(update, 1) for update in case["then"])]
    states = {"state_before": contents(rule, before), "state_after": contents(rule, after)}
    for name, state in states.items():
        found = [told_of(rule, key, window, held) for (key, window), held in state.items()]
        if name in case:
            check_windows(case[name], found, name)
    names = case.get("output_delta_columns", [])
    if "output_delta" in case:
        assert names[-1:] == ["diff"], f"output_delta_columns {names}: the last is not diff"
        rows = [
            {of: tuple(told_of(rule, *of, held)[name] for name in names[:-1]) for of, held in state.items()}
            for state in states.values()
        ]
        differs = [[*row, diff] for _, row, diff in delta(rows[0], rows[1])]
        assert Counter(map(str, differs)) == Counter(map(str, case["output_delta"])), f"output_delta: found {differs}"


KINDS = {
    **{name: partial(run, name) for name in KIND_FIELDS if name != "global"},
    "retractions": retractions,
}

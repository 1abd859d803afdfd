"""Windows: records in the order they came, instants and the windows that hold them, signed updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tests.conformance import batching, window_script
from tests.conformance.fields import check_known
from tests.conformance.window_answers import before_and_after, late_records, windows_of_instants
from tests.conformance.window_declared import by_production, by_the_law, of_file
from tests.conformance.window_emitted import Stream, check_emitted, windows_of_stream
from tests.conformance.window_retention import is_kept, require_retention
from tests.conformance.window_words import (
    KIND_FIELDS,
    KNOWN,
    Case,
    bounds_of,
    check_windows,
    compare,
    fields_of,
    happened,
    kind_of,
    rule_of,
)
from tests.oracles.law.emitted import delta
from tests.oracles.law.records import behind, on_time
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Derived
from tidemark.model.window.contents import Rule
from tidemark.model.window.frozen_sessions import Revival
from tidemark.model.window.kinds import Hopping, Session, Tumbling, Window, WindowKind
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.sessions import merged, session_of
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
        check_known(
            case, {"expect", "grace", "records", "bounds", "retention", *window_script.FIELDS} | KIND_FIELDS[name]
        )
        Stream(case.get("records", ()))
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
    """Whether a collection file that declares it is refused, and so is what it would declare."""
    gaps = (
        [record["gap"] for record in case.get("records", ())]
        if case.get("gap") == "per record"
        else [case.get("gap", 1)]
    )
    said = [{"step": 1, "max_size": 1, **case, "gap": gap} for gap in gaps]
    by_file = any(_raises(lambda one=one: _file_of(name, one)) for one in said)  # type: ignore[misc]
    by_model = any(_raises(lambda one=one: rule_of(name, one)) for one in said)  # type: ignore[misc]
    by_production(computed=False)
    assert by_file == by_model, f"refused by the file: {by_file}, by the model: {by_model}"
    if by_file or "retention" not in case:
        return by_file
    by_the_law("no collection file says for how long rows of open windows are kept")
    rule = rule_of(name, said[0])
    return _raises(lambda: require_retention(rule.kind, rule.grace, case["retention"]))


def _file_of(name: str, case: Case) -> Derived:
    grace = {} if case.get("grace") is None else {"grace": case["grace"], "late": "discard"}
    return of_file(name, fields_of(name, case), grace)


def _raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except InvalidUsage:
        return True
    return False


def _declared(name: str, case: Case) -> None:
    """What engines say of one declaration. What all refuse is refused; that rows between windows vanish, which some
    allow, has to be asked for; an offset is taken modulo the advance, which some refuse."""
    check_known(case, {"all", "ours", "expect", "grace", "retention"} | KIND_FIELDS[name] | ENGINES)
    words = [str(case[engine]) for engine in ENGINES if engine in case]
    verdict = next((str(case[one]) for one in ("expect", "ours", "all") if one in case), None)
    refused = _is_refused(name, case)
    if verdict is None and any(word.startswith("allowed") for word in words):
        assert refused, "it is declared, though it leaves rows out and that was not asked for"
        assert not _is_refused(name, {**case, "sampling": True}), "it is refused, though it was asked for"
    elif verdict is None and "offset" in case:
        kind = kind_of(name, case)
        assert isinstance(kind, Hopping | Tumbling), f"an offset of {kind}"
        step = kind.advance if isinstance(kind, Hopping) else kind.size
        modulo, instants = replace(kind, offset=kind.offset % step), range(-2 * kind.size, 2 * kind.size)
        found, same = (windows_of_instants(Rule(one), instants) for one in (kind, modulo))
        assert found == same, f"windows of {kind} are {found}"
    else:
        assert refused == (verdict or "error").startswith("error"), f"expected {verdict or words}, refused: {refused}"


def _assigned(name: str, case: Case) -> None:
    rule = rule_of(name, case)
    _bounds(rule.kind, case.get("bounds"))
    assigned = windows_of_instants(rule, [each["time"] for each in case["assign"]])
    for each, found in zip(case["assign"], assigned, strict=True):
        check_known(each, {"time", "starts", "windows"})
        if "starts" in each:
            assert [window.start for window in found] == each["starts"], f"at {each['time']}: found {found}"
        if "windows" in each:
            assert [[*window] for window in found] == each["windows"], f"at {each['time']}: found {found}"


def _records(name: str, case: Case) -> None:
    if case.get("gap") == "per record":
        _gaps_of_records(case)
        return
    _bounds(kind_of(name, case), case.get("bounds"))
    # Kafka's sessions, which the vectors tell, merge with what was closed; `closed_is_final` is ours.
    options = {"revival": Revival.ALL_MERGE} if name == "session" and case.get("grace") is not None else {}
    rule, stream = rule_of(name, case, **options), Stream(case["records"])
    listed = case.get("windows", case.get("sessions"))
    if "stream_time" in case:
        found = stream.time if stream.rows else None
        assert found == case["stream_time"], f"stream_time: found {found}"
    if isinstance(case.get("lateness"), dict):
        _behind(case["lateness"], stream)
    for one in listed or ():
        check_known(one, KNOWN)
    pure = case.get("pure_window_lateness")
    if pure is not None:
        _pure(rule, stream, pure)
    if pure is None or pure.get("same_as_kafka", True):
        if listed is not None:
            check_windows(listed, windows_of_stream(rule, stream))
        _late(rule, stream, case)
        check_emitted(rule, stream, case)
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
    assert words in (None, bounds_of(kind)), f"bounds: expected {words}, found {bounds_of(kind)}"


def _late(rule: Rule, stream: Stream, case: Case) -> None:
    judged, without = judge(rule, stream.rows), [row.batch for row in stream.without]
    found = {
        "dropped_records": sorted([*late_records(rule, stream.rows), *without]),
        "partially_late_records": sorted(one.row.batch for one in judged if one.late_for_some),
        "dropped_window_updates": lateness(judged).window_updates_late + len(without),
        "in_grace": not any(one.late for one in judged),
    }
    compare({field: case[field] for field in found if field in case}, found, "late")


def _pure(rule: Rule, stream: Stream, pure: Case) -> None:
    """Lateness by windows: what was late for whatever window could have contained it is dropped."""
    check_known(pure, {"windows", "dropped_records", "same_as_kafka"})
    if "windows" in pure:
        check_windows(pure["windows"], windows_of_stream(rule, stream), "pure_window_lateness")
    if "dropped_records" in pure:
        dropped = sorted(one.row.batch for one in judge(rule, stream.rows) if one.refused)
        assert dropped == pure["dropped_records"], f"pure_window_lateness: dropped_records: found {dropped}"


def _record_lateness(rule: Rule, stream: Stream, expected: Case) -> None:
    """Lateness by records: what is left is as if nothing had ever been late."""
    check_known(expected, {"windows", "dropped_records", "same_as_kafka"})
    left = on_time(stream.rows, rule.grace)
    if "windows" in expected:
        of = Stream(())
        of.rows, of.time = left, stream.time
        check_windows(
            expected["windows"], windows_of_stream(replace(rule, late=Late.REEMIT, max_lateness=None), of), "record"
        )
    if "dropped_records" in expected:
        dropped = sorted({row.batch for row in stream.rows} - {row.batch for row in left})
        assert dropped == expected["dropped_records"], f"record_lateness: dropped_records: found {dropped}"


def _closed_is_final(rule: Rule, stream: Stream, expected: Any) -> None:
    expected = expected if isinstance(expected, dict) else {"sessions": expected}
    check_known(expected, {"sessions", "windows", "dropped_records", "dropped_window_updates", "emitted_on_close"})
    listed = expected.get("sessions", expected.get("windows"))
    if listed is not None:
        check_windows(listed, windows_of_stream(rule, stream), "closed_is_final")
    _late(rule, stream, expected)
    check_emitted(rule, stream, expected)


def _behind(expected: Case, stream: Stream) -> None:
    """How late records came, as a metric."""
    check_known(expected, {"max", "avg"})
    found = behind(stream.rows)
    compare(expected, {"max": max(found), "avg": sum(found) / len(found)}, "lateness")


def _same_in(rule: Rule, stream: Stream, engines: list[str], listed: list[Case]) -> None:
    """Beam alone keeps records separate whose distance is exactly the gap: whose sessions are these then?"""
    assert isinstance(rule.kind, Session), "same_in is said of sessions"
    assert set(engines) <= ENGINES, f"same_in {engines} is not known"
    if others := [engine for engine in engines if engine != "beam"]:
        merging = replace(rule, kind=replace(rule.kind, exact_gap_merges=True))
        check_windows(listed, windows_of_stream(merging, stream), f"same_in {others}")
    if "beam" in engines:
        separate = replace(rule, kind=replace(rule.kind, exact_gap_merges=False))
        check_windows(listed, windows_of_stream(separate, stream), "same_in beam")


def _readable(rule: Rule, stream: Stream, retention: int, readable: list[Any] | None) -> None:
    if readable is None:
        return
    kept = [one for one in windows_of_stream(rule, stream) if is_kept(Window(one["start"], 0), stream.time, retention)]
    if all(isinstance(one, dict) for one in readable):
        check_windows(readable, kept, "readable_after_retention")
        return
    found = [_in_form_of(one, kept_one) for one, kept_one in zip(readable, kept, strict=False)]
    assert len(kept) == len(readable), f"readable: {kept}"
    assert Counter(map(str, found)) == Counter(map(str, readable)), f"readable: {kept}"


def _in_form_of(like: Any, window: dict[str, Any]) -> Any:
    """A window, in the form of another: its start, or key, start and end."""
    row = [window["key"], window["start"], window["end"], *([window["values"]] if isinstance(like, list) else [])]
    return row[: len(like)] if isinstance(like, list) else window["start"]


def _gaps_of_records(case: Case) -> None:
    """Records with a gap each: their own intervals, and what these merge to."""
    by_the_law("no collection file gives each record a gap of its own")
    exact = case.get("exact_gap_merges", True)
    own: dict[Any, list[Window]] = {}
    for record in case["records"]:
        row, gap = happened(record, 0), record["gap"]
        own.setdefault(row.key, []).append(session_of(Session(gap, exact), (record["time"], record["time"])))
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


def _interval(listed: list[Any]) -> Case:
    names = ("key", "start", "end") if len(listed) == 3 else ("start", "end")
    return dict(zip(names, listed, strict=True))


def _within(case: Case, key: Any, start: int, end: int) -> int:
    return sum(1 for record in case["records"] if record["key"] == key and start <= record["time"] < end)


def _after_restart(name: str, case: Case) -> None:
    """What is there after a run was stopped, and more records came; or the rows that are emitted then."""
    after = case["after_restart"]
    expected = after if isinstance(after, dict) else {"emitted_on_close": after} if isinstance(after, list) else {}
    check_known(expected, RECORDS - {"after_restart"})
    whole = {field: value for field, value in case.items() if field in KIND_FIELDS[name] | {"grace", "bounds"}}
    _records(name, {**whole, **expected, "records": [*case["records"], *expected.get("records", ())]})


def retractions(case: Case) -> None:
    """Signed updates, then more of them: the windows before and after, and by what they differ."""
    fields = {"updates", "then", "state_before", "state_after", "output_delta", "output_delta_columns", "bounds"}
    check_known(case, fields | KIND_FIELDS[case["kind"]])
    rule = rule_of(case["kind"], case)
    before = [happened(update, 0) for update in case["updates"]]
    more = [happened(update, 1) for update in case["then"]]
    states = dict(zip(("state_before", "state_after"), before_and_after(rule, before, more), strict=True))
    for name, state in states.items():
        if name in case:
            check_windows(case[name], state, name)
    names = case.get("output_delta_columns", [])
    if "output_delta" in case:
        assert names[-1:] == ["diff"], f"output_delta_columns {names}: the last is not diff"
        rows = [
            {
                (one["key"], Window(one["window_start"], one["window_end"])): tuple(one[name] for name in names[:-1])
                for one in state
            }
            for state in states.values()
        ]
        differs = [[*row, diff] for _, row, diff in delta(rows[0], rows[1])]
        assert Counter(map(str, differs)) == Counter(map(str, case["output_delta"])), f"output_delta: found {differs}"


def triggers(case: Case) -> None:
    """Scripts run upon windows, and those that only count records upon batches too; all else is about batches."""
    script = case.get("script", [])
    if str(case.get("expect", "")).startswith("error"):
        check_known(case, {"expect", "trigger", "window", "script", "accumulation", "emit_columns"})
        by_the_law("no collection file declares a trigger")
        assert _is_refused_trigger(case["trigger"]), f"expected {case['expect']}, it is declared"
        return
    if script:
        name = (
            "session" if "gap" in case else "hopping" if "advance" in case else "tumbling" if "size" in case else None
        )
        window_script.run(name or "global", case)
    if not script or ("count" in case["trigger"] and all("record" in step for step in script)):
        batching.run(case)


def _is_refused_trigger(words: str) -> bool:
    try:
        window_script.trigger_of(words)
    except InvalidUsage:
        return True
    return False


KINDS = {
    **{name: partial(run, name) for name in KIND_FIELDS if name != "global"},
    "retractions": retractions,
    "triggers": triggers,
}

"""The vectors' words for windows, and ours: kinds by their fields, records, what is said of a window."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.conformance.fields import check_known
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule
from tidemark.model.window.evaluate import evaluate
from tidemark.model.window.happened import Contents, Happened
from tidemark.model.window.kinds import Cumulate, Hopping, Session, Sliding, Tumbling, Window, WindowKind
from tidemark.model.window.windows import Late, Windows

Case = dict[str, Any]

KIND_FIELDS = {
    "sliding": {"size", "clamp_start_at_zero"},
    "session": {"gap", "exact_gap_merges", "max_length"},
    "hopping": {"size", "advance", "offset", "clamp_start_at_zero", "sampling"},
    "tumbling": {"size", "advance", "offset", "clamp_start_at_zero"},
    "cumulate": {"size", "max_size", "step", "offset", "clamp_start_at_zero"},
    "global": {"window"},
}
"""What the cases of a kind say of it."""
KNOWN = {
    *("key", "start", "end", "last", "end_exclusive", "window_start", "window_end", "window_end_minus_1"),
    *("values", "count", "sum", "min_time", "max_time", "closed"),
}
"""What is said of a window."""
FOR_EVER = 2**60
"""A global window is one that no frontier of the vectors reaches the end of."""


def kind_of(name: str, case: Case) -> WindowKind:
    """The kind that a case declares. Raises InvalidUsage where it is refused."""
    clamp = case.get("clamp_start_at_zero", False)
    if name == "sliding":
        return Sliding(case["size"], clamp)
    if name == "session":
        return Session(case["gap"], case.get("exact_gap_merges", True), case.get("max_length"))
    if name == "cumulate":
        return Cumulate(case["max_size"] if "max_size" in case else case["size"], case["step"], case.get("offset", 0))
    if name == "global":
        return Tumbling(2 * FOR_EVER, -FOR_EVER)
    size: int = case["size"] if "size" in case else case["advance"]
    offset: int = case.get("offset", 0)
    if name == "tumbling":
        assert case.get("advance", size) == size, "a tumbling window that advances by another length than its size"
        return Tumbling(size, offset)
    assert name == "hopping", f"kind of window {name} is not known"
    return Hopping(size, case.get("advance", size), offset, case.get("sampling", False))


def fields_of(name: str, case: Case) -> dict[str, Any]:
    """What a case says of its kind, as the fields of a collection file that have these names."""
    if name == "cumulate":
        return {"size": case.get("max_size", case.get("size")), "step": case["step"], "offset": case.get("offset", 0)}
    if name in ("tumbling", "hopping"):
        size = case["size"] if "size" in case else case["advance"]
        fields = {"size": size, "offset": case.get("offset", 0)}
        more = {"advance": case.get("advance", size), "sampling": case.get("sampling", False)}
        return fields | more if name == "hopping" else fields
    return {field: case[field] for field in KIND_FIELDS[name] if field in case}


def bounds_of(kind: WindowKind) -> str:
    """Which ends belong to the windows of a kind."""
    return "[start,end] both inclusive" if kind.inclusive else "[start,end)"


def rule_of(name: str, case: Case, **options: Any) -> Rule:
    """The rule of a case, declared as a definition is, so that what a definition refuses is refused. Where no grace is
    given, no window takes rows too late for it."""
    grace = case.get("grace")
    if grace is not None:
        options = {"grace": grace, "late": Late.DISCARD, **options}
    declared = {field: options[field] for field in ("grace", "late", "max_lateness") if field in options}
    windows = Windows((), "t", kind_of(name, case), (Aggregate("count", Function.COUNT),), **declared)
    clamp = case.get("clamp_start_at_zero", False) and not isinstance(windows.kind, Sliding)
    others = {field: value for field, value in options.items() if field not in declared}
    return Rule(windows.kind, windows.grace, windows.late, windows.max_lateness, clamp, **others)


def happened(record: Any, learned: int, batch: int = 0) -> Happened:
    """A record of the vectors: [key, value, time], [key, time], or the same by name."""
    if isinstance(record, dict):
        check_known(record, {"key", "value", "time", "diff", "gap"})
        return Happened(record["key"], record["value"], record["time"], learned, record.get("diff", 1), batch)
    key, value, time = record if len(record) == 3 else (record[0], 1, record[1])
    return Happened(key, value, time, learned, 1, batch)


COUNT, SUM, FIRST, LAST, VALUES = (
    Aggregate("count", Function.COUNT),
    Aggregate("sum", Function.SUM, "number"),
    Aggregate("min_time", Function.MIN, "time"),
    Aggregate("max_time", Function.MAX, "time"),
    Aggregate("values", Function.COLLECT, "value"),
)


def described(rule: Rule, key: Any, window: Window, contained: Contents) -> dict[str, Any]:
    """All that vectors tell of a window and what it holds, by their names."""
    timed: Contents = {((value, at), at): count for (value, at), count in contained.items()}
    there: Contents = {of: abs(count) for of, count in timed.items()}
    of = {"number": lambda value: _number(value[0]), "time": lambda value: value[1], "value": lambda value: value[0]}
    read = lambda one, value: of[one.of](value)  # noqa: E731
    everything = lambda one, value: True  # noqa: E731
    (count,) = evaluate((COUNT,), timed, read, everything)
    total = evaluate((SUM,), timed, read, everything)[0] if numbers(value for value, _ in contained) else None
    first, last, values = evaluate((FIRST, LAST, VALUES), there, read, everything)
    return named(rule.kind, key, window, (count, total, first, last, sorted(json.loads(values), key=str)))


def named(kind: WindowKind, key: Any, window: Window, aggregates: tuple[Any, ...]) -> dict[str, Any]:
    """A window by the vectors' names; `aggregates` are its count, its sum, its first and last time, and its values."""
    count, total, first, last, values = aggregates
    return {
        "key": key,
        "start": window.start,
        "end": last if isinstance(kind, Session) else window.end,
        "last": last,
        "end_exclusive": window.end + int(kind.inclusive),
        "window_start": window.start,
        "window_end": window.end,
        "window_end_minus_1": window.end - 1,
        "values": values,
        "count": count,
        "sum": total,
        "min_time": first,
        "max_time": last,
    }


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) else value


def numbers(values: Iterable[Any]) -> bool:
    """Whether values can be added up."""
    return all(isinstance(value, int | float) or str(value).lstrip("-").isdigit() for value in values)


def check_windows(expected: Iterable[Case], found: Iterable[dict[str, Any]], what: str = "windows") -> None:
    """Raise unless these are the windows, each with all that is said of it."""
    left = [*found]
    for wanted in expected:
        place = ("key", "start", "end") if "end" in wanted else ("key", "start", "last", "end_exclusive")
        named = [name for name in place if name in wanted]
        at = [one for one in left if all(one[name] == wanted[name] for name in named)]
        assert at, f"{what}: expected {wanted}, found {left}"
        compare(wanted, at[0], what)
        left.remove(at[0])
    assert not left, f"{what}: found {left} besides"


def compare(wanted: Mapping[str, Any], found: Mapping[str, Any], what: str) -> None:
    """Raise unless all that is said is so, values as a multiset."""
    check_known(dict(wanted), found.keys())
    for name, value in wanted.items():
        if name in found:
            expected = sorted(value, key=str) if name == "values" else value
            assert found[name] == expected, f"{what}: {name} expected {value}, found {found[name]}: {dict(found)}"

"""What is emitted as windows close, one record after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.conformance.window_answers import all_windows
from tests.conformance.window_words import Case, check_windows, compare, happened
from tests.oracles.law.emitted import Emitted, Id
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session


class Stream:
    """Records in the order they came, each learned at the stream's time as it is with it. What has no key or
    no value is in no window, and time does not move by it."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.rows: list[Happened] = []
        self.without: list[Happened] = []
        self.time = -(2**61)
        for index, record in enumerate(records):
            row = happened(record, self.time, batch=index)
            if row.key is None or row.value is None or row.at is None:
                self.without.append(row)
                continue
            self.time = max(self.time, row.at)
            self.rows.append(row._replace(learned=self.time))


def windows_of_stream(rule: Rule, stream: Stream) -> list[dict[str, Any]]:
    """All windows, with what vectors say of each, and whether it is closed."""
    return all_windows(rule, stream.rows, [row for row in stream.without if row.at is not None], stream.time)


def check_emitted(rule: Rule, stream: Stream, case: Case) -> None:
    """What is emitted as windows close, one record after the other. A run that is killed after any record, and runs
    again, emits nothing twice: computed from the state before, it gives the same again, and from the state after,
    nothing."""
    emitted, rows = Emitted(), list[Happened]()
    for row in stream.rows:
        rows.append(row)
        emitted = _emitted_once(rule, rows, emitted, row.learned)
    if "emitted_on_close" in case:
        _each_once(rule, stream, case["emitted_on_close"], emitted)
    if "updates" in case:
        _last_updates(rule, stream, case["updates"])


def _last_updates(rule: Rule, stream: Stream, updates: list[Any]) -> None:
    """The last update of each window is its row; one that is null, or of a session that another took in, is gone."""
    last = {(row["key"], row["start"], row.get("end")): row for row in map(_row, updates)}
    found = {(one["key"], one["start"], one["end"]): one for one in windows_of_stream(rule, stream)}
    for at, row in last.items():
        if row.get("values", ()) is None:
            assert at not in found, f"updates: {row} is there"
        elif at in found or not isinstance(rule.kind, Session):
            assert at in found, f"updates: {row} is not there"
            compare(row, found[at], "updates")
        else:
            around = [one for one in found.values() if one["start"] <= row["start"] <= row["end"] <= one["last"]]
            assert [one for one in around if one["key"] == row["key"]], f"updates: {row} was taken in by none"


def _emitted_once(rule: Rule, rows: list[Happened], emitted: Emitted, close: int) -> Emitted:
    closed: dict[Id, Any] = {
        (key, window): frozenset(contained.items())
        for (key, window), contained in contents(rule, rows).items()
        if rule.closed(window.end, close)
    }
    signed, after = emitted.emit(closed)
    again, same = emitted.emit(closed)
    assert (signed, after) == (again, same), "a run that is killed and runs again emits something else"
    assert not after.emit(closed)[0], "a window is emitted twice"
    come = Counter((one.key, one.window, one.revision) for one in signed if one.diff > 0)
    assert all(count == 1 for count in come.values()), f"emitted twice: {come}"
    return after


def _each_once(rule: Rule, stream: Stream, listed: list[Any], emitted: Emitted) -> None:
    """The rows that were emitted, after an advance to the end of the stream: up to its time, and past it where windows
    are listed that are open then."""
    wanted = [*map(_row, listed)]
    closed = [one for one in windows_of_stream(rule, stream) if one["closed"]]
    assert {(key, *window) for key, window in emitted.rows} == {_place(rule, one) for one in closed}, (
        "not emitted as closed"
    )
    found = closed if len(wanted) <= len(closed) else windows_of_stream(rule, stream)
    check_windows(wanted, found, "emitted_on_close")


def _place(rule: Rule, one: dict[str, Any]) -> tuple[Any, ...]:
    return one["key"], one["window_start"], one["window_end"]


def _row(listed: Any) -> Case:
    """A row as vectors list it: by names, or [key, start, end, values joined by +, the newest time]."""
    if isinstance(listed, dict):
        return {name: value for name, value in listed.items() if name != "closed"}
    names = ("key", "start", "end", "values", "max_time")
    row = dict(zip(names, listed, strict=False))
    if isinstance(row.get("values"), str):
        row["values"] = row["values"].split("+")
    elif isinstance(row.get("values"), int):
        row["count"] = row.pop("values")
    return row

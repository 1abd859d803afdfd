"""Chunks: cuts, metadata, latest-at, range, the interval index, joining, and questions between inserts.

What the vectors name otherwise: a component is a column `c:…`, a timeline a column `t:…`, the row id a column of its
own, by which ties are broken. Questions of latest-at and range are asked of a collection that holds the chunks
(chunk_store.py), as a reader asks them, and of the law. Static rows, which only the chunk store of the vectors has,
are passed by the option of the law that no read passes (`static`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.conformance.chunk_store import ChunkStore, holding
from tests.conformance.fields import check_known
from tidemark.errors import InvalidUsage
from tidemark.model.chunk import chunk as chunks
from tidemark.model.chunk import cuts, forest, latest, metadata

Case = dict[str, Any]

ROW = "row"
CUTS = {cuts.CutReason.FLUSH: "manual", cuts.CutReason.END: "shutdown"}
"""Reasons that the vectors name otherwise."""
ENDS = {"tick": cuts.CutReason.AGE, "flush": cuts.CutReason.FLUSH, "close": cuts.CutReason.END}
"""Which reason from outside an operation is."""
EITHER = {cuts.CutReason.DATATYPE.value, cuts.CutReason.TIMELINE_SET.value}
"""Reasons of one row of which the vectors and reads.md list another one first: either is right where both hold."""
REFUSED = {"key|entity": "two keys", "type|component": "two datatypes", "timeline": "two timeline sets"}
"""What an expected error may say, and what ours says."""


def batcher(case: Case) -> None:
    """A case of `batcher_cases`: one appender a key; the chunks in the order of their first rows."""
    check_known(case, {"config", "ops", "expected_seed", "expected_built"})
    rules, found = _rules(case["config"]), list[Case]()
    appenders, buffers = dict[str, cuts.Appender](), dict[str, list[Case]]()
    for op in case["ops"]:
        if op["op"] == "row":
            check_known(op, {"op", "key", "row", "t", "c", "bytes"})
            key = op["key"]
            buffers.setdefault(key, []).append(op)
            appender = appenders.get(key, cuts.Appender(rules))
            appenders[key], ended = appender.appended(_arrival(op))
            found += [_cut(key, buffers[key], each) for each in ended]
        else:
            check_known(op, {"op"})
            for key, appender in appenders.items():
                appenders[key], last = appender.closed(ENDS[op["op"]])
                found += [] if last is None else [_cut(key, buffers[key], last)]
    found.sort(key=_first_row)
    expected = sorted(case["expected_seed"], key=_first_row)
    assert len(found) == len(expected), f"expected {len(expected)} chunks, found {len(found)}"
    for one, other in zip(expected, found, strict=True):
        check_known(one, {*other, "flush"})
        compared = {name: other[name] for name in one if name not in ("flush", "also")}
        if one.get("cut") in other["also"] and {one["cut"], other["cut"]} == EITHER:
            compared["cut"] = one["cut"]
        wanted = {name: value for name, value in one.items() if name in compared}
        assert compared == wanted, f"expected {wanted}, found {compared}"


def _first_row(piece: Case) -> int:
    return int(piece["rows"][0])


def _rules(config: Case) -> cuts.CutRules:
    known = ("flush_num_rows", "flush_num_bytes", "chunk_max_rows_if_unsorted", "large_rows")
    # When the timer fires is in the operations; back-pressure cuts nothing.
    check_known(config, {*known, "flush_tick_ms", "max_bytes_in_flight"})
    return cuts.CutRules(*map(config.get, known))


def _arrival(op: Case) -> cuts.Arrival:
    return cuts.Arrival(op["t"], {name: datatype for name, (datatype, _) in op["c"].items()}, op.get("bytes", 0))


def _cut(key: str, buffer: list[Case], ended: cuts.Cut) -> Case:
    """A chunk that has ended, in the words of the vectors; its rows leave the buffer."""
    chunk = ended.chunk
    rows, buffer[:] = buffer[: chunk.rows], buffer[chunk.rows :]
    return {
        "key": key,
        "rows": [row["row"] for row in rows],
        "times": {name: [row["t"][name] for row in rows] for name in chunk.times},
        "sorted": {name: name not in chunk.unsorted for name in chunk.times},
        "columns": {
            name: {"dtype": datatype, "valid": [row["c"].get(name, (None, None))[1] is not None for row in rows]}
            for name, datatype in chunk.datatypes.items()
        },
        "cut": CUTS.get(ended.reason, ended.reason.value),
        "also": [each.value for each in ended.also],
    }


def described(case: Case) -> None:
    """A case of `metadata_cases`."""
    check_known(case, {"chunk", "expected"})
    chunk = _chunk(case["chunk"], (ROW,))
    found, names = metadata.describe(chunk), sorted(each[2:] for each in chunk.timelines if each != ROW)
    components = sorted(name[2:] for name in chunk.datatypes)
    ids = found.timelines[ROW]
    facts: Case = {
        "row_ids_sorted": ids.is_sorted,
        "row_id_range": _pair(ids.bounds),
        "timeline_sorted": {name: found.timelines[f"t:{name}"].is_sorted for name in names},
        "timeline_range": {name: _pair(found.bounds(f"t:{name}")) for name in names},
        "component_range": {
            name: _present({each: _pair(found.bounds(f"t:{name}", f"c:{each}")) for each in components})
            for name in names
        },
        "component_row_id_range": _present({each: _pair(found.bounds(ROW, f"c:{each}")) for each in components}),
        "num_cells": found.values,
        "num_rows": found.rows,
        "is_static": not names,
        "per_component": {
            f"{name}/{each}": found.columns[f"t:{name}", f"c:{each}"].rows
            if found.bounds(f"t:{name}", f"c:{each}")
            else 0
            for name in names
            for each in components
        },
    }
    check_known(case["expected"], facts)
    for name, expected in case["expected"].items():
        _same(name, _without_nulls(expected), facts[name])


def _pair(bounds: metadata.Ends | None) -> list[int] | None:
    return None if bounds is None else list(bounds)


def _present(by_name: Case) -> Case:
    return {name: value for name, value in by_name.items() if value is not None}


def _without_nulls(expected: Any) -> Any:
    return _present({k: _without_nulls(v) for k, v in expected.items()}) if isinstance(expected, dict) else expected


def latest_at(case: Case) -> None:
    """A case of `latest_at_cases`."""
    _ask_all(case, "latest_at")


def in_range(case: Case) -> None:
    """A case of `range_cases`."""
    _ask_all(case, "range")


def _ask_all(case: Case, kind: str) -> None:
    check_known(case, {"chunks", "queries"})
    queries = [{"kind": kind, **query} for query in case["queries"]]
    with _store_of(case["chunks"], queries) as store:
        for query in queries:
            _ask(case["chunks"], query, query["expect"], store)


@contextmanager
def _store_of(stored: list[Case], queries: list[Case]) -> Iterator[ChunkStore]:
    """The chunks in a collection that these questions can be asked of."""
    for chunk in stored:
        _chunk(chunk)  # a field that is not known fails
    for query in queries:
        check_known(query, _OF_QUERY)
    components = [name for query in queries for name in (*query.get("components", ()), query.get("component")) if name]
    with holding(stored, [query["timeline"] for query in queries], components) as store:
        yield store


_OF_QUERY = {"kind", "key", "timeline", "at", "within", "min", "max", "component", "components", "expect"}


def _ask(stored: list[Case], query: Case, expected: Any, store: ChunkStore) -> None:
    """Ask one question of one component, of several, or of whole rows: of the law, and of the collection."""
    if "components" in query:
        found = {name: _answered(stored, query, name, store) for name in query["components"]}
        expected = {name: expected.get(name) for name in found} | expected
    else:
        found = _answered(stored, query, query.get("component"), store)
    _same(f"{ {name: query[name] for name in query if name != 'expect'} }", expected, found)


def _answered(stored: list[Case], query: Case, component: str | None, store: ChunkStore) -> Any:
    """What a reader is answered. Static rows, which no collection has, are asked of the law alone."""
    law = {"latest_at": _latest, "range": _range}[query["kind"]](stored, query, component)
    _, static = _question(stored, query, component)
    if static:
        return law
    answer = store.latest(query, component) if query["kind"] == "latest_at" else store.range(query, component)
    _same(f"the answer to {query}, by the law", law, answer)
    return answer


def _latest(stored: list[Case], query: Case, component: str | None) -> Case | None:
    asked, static = _question(stored, query, component)
    of_key = [_bounded(each, asked) for each in _of_key(stored, query)]
    found = latest.latest_at(of_key, asked, query["at"], query.get("within"), static=static).row
    return None if found is None else _answer(found, asked)


def _range(stored: list[Case], query: Case, component: str | None) -> list[list[int | None]]:
    asked, static = _question(stored, query, component)
    of_key = [_bounded(each, asked) for each in _of_key(stored, query)]
    found = latest.in_range(of_key, asked, query["min"], query["max"], static=static)
    return [[row.time(asked.timeline), row.values[ROW]] for row in found for _ in range(row.diff)]  # type: ignore[list-item]


def _answer(row: chunks.Row, asked: latest.Question) -> Case:
    value = {} if asked.column is None else {"value": row.values[asked.column]}
    return {"time": row.time(asked.timeline), "row": row.values[ROW], **value}


def _question(stored: list[Case], query: Case, component: str | None) -> tuple[latest.Question, list[chunks.Row]]:
    """The question, and the rows that are static."""
    of_key = _of_key(stored, query)
    columns = sorted({name for each in of_key for row in _chunk(each).rows for name in row.values})
    column = None if component is None else f"c:{component}"
    asked = latest.Question(f"t:{query['timeline']}", tuple(columns), (ROW,), column)
    return asked, [row for each in of_key for row in _chunk(each).rows if not _has_times(row)]


def _of_key(stored: list[Case], query: Case) -> list[Case]:
    return [each for each in stored if each["key"] == query.get("key", each["key"])]


def _bounded(stored: Case, asked: latest.Question) -> latest.BoundedChunk:
    return latest.bounded(_chunk(stored), asked.timeline, asked.column)


def _has_times(row: chunks.Row) -> bool:
    return any(name.startswith("t:") for name in row.values)


def indexed(case: Case) -> None:
    """A case of `index_cases`: what a question opens, and what a range overlaps."""
    check_known(case, {"chunks", "queries", "max_interval_length"})
    for query in case["queries"]:
        check_known(query, {"kind", "key", "timeline", "at", "min", "max", "component", *_WALKS})
        walk = query.get("upstream_walk")
        if query["kind"] == "range":
            found = set(_index(case["chunks"], query).overlapping(query["min"], query["max"]).items)
            _same(f"{query}", set(found if query.get("exact") is None else query["exact"]), found)
        else:
            asked, _ = _question(case["chunks"], query, query.get("component"))
            rows = {each["id"]: _chunk(each).rows for each in case["chunks"]}
            order = _index(case["chunks"], query).falling(query["at"])
            found = set(latest.latest_of(order, rows.__getitem__, asked, query["at"]).opened)
            needed = set(query.get("must_include") or ())
            assert found >= needed, f"{query}: expected {needed}, opened {found}"
        assert walk is None or found <= set(walk), f"{query}: {found} is more than the walk {walk}"
    _check_lengths(case["chunks"], case.get("max_interval_length", {}))


_WALKS = ("upstream_walk", "must_include", "exact")


def _index(stored: list[Case], query: Case) -> forest.Forest[str]:
    """The chunks of a key by their bounds on the timeline asked for, inserted one by one."""
    asked, _ = _question(stored, query, query.get("component"))
    index = forest.Forest[str]()
    for each in _of_key(stored, query):
        if (bounds := metadata.describe(_chunk(each)).bounds(asked.timeline, asked.column)) is not None:
            index = index.inserted(*bounds, each["id"])
    return index


def _check_lengths(stored: list[Case], expected: Case) -> None:
    """The longest chunk on a timeline, and by `timeline/component`."""
    check_known(expected, {"whole", "per_component"})
    known = [metadata.describe(_chunk(each)) for each in stored]
    for pair, length in {**expected.get("whole", {}), **expected.get("per_component", {})}.items():
        timeline, _, component = pair.partition("/")
        bounds = [each.bounds(f"t:{timeline}", f"c:{component}" if component else None) for each in known]
        _same(f"longest of {pair}", length, max((each.last - each.first for each in bounds if each), default=0))


def joined(case: Case) -> None:
    """A case of `concat_cases`: one chunk after the other, as it comes or sorted by row id; or refused."""
    own = ("expect_unsorted_concat", "expect_sorted_concat_rows", "expect_timeline_sorted", "expect_times")
    check_known(case, {"left", "right", "expect_error", *own})
    left, right = (_chunk(case[side], (ROW,)) for side in ("left", "right"))
    if case.get("expect_error"):
        return _check_refused(left, right, case["expect_error"])
    whole = chunks.joined(left, right)
    in_order = whole.in_order((ROW,))
    # Of which of the two the fields below speak, where only the one is expected.
    meant = whole if "expect_unsorted_concat" in case and "expect_sorted_concat_rows" not in case else in_order
    assert any(name in case for name in own), "nothing is expected"
    for name, found in {
        "expect_unsorted_concat": _written(whole),
        "expect_sorted_concat_rows": [row.values[ROW] for row in in_order.rows],
        "expect_timeline_sorted": _sorted(meant),
        "expect_times": {each[2:]: [row.time(each) for row in meant.rows] for each in meant.timelines - {ROW}},
    }.items():
        if name in case:
            check_known(case[name] if isinstance(case[name], dict) else {}, found if isinstance(found, dict) else ())
            wanted = _filled(case[name], whole) if name == "expect_unsorted_concat" else case[name]
            same = {each: found[each] for each in wanted} if isinstance(wanted, dict) else found  # type: ignore[call-overload]
            _same(name, wanted, same)


def _check_refused(left: chunks.Chunk, right: chunks.Chunk, expected: Any) -> None:
    reason = ""
    try:
        chunks.joined(left, right)
    except InvalidUsage as error:
        reason = str(error)
    assert reason, f"expected error {expected}, they are joined"
    named = [ours for words, ours in REFUSED.items() if re.search(words, str(expected).lower())]
    assert expected is True or any(ours in reason for ours in named), f"expected {expected}, found {reason}"


def _written(chunk: chunks.Chunk) -> Case:
    components = sorted(chunk.datatypes)
    return {
        "rows": [
            {
                "row": row.values[ROW],
                "t": {name[2:]: row.time(name) for name in sorted(chunk.timelines - {ROW})},
                "c": {name[2:]: row.values.get(name) for name in components},
            }
            for row in chunk.rows
        ],
        "row_ids_sorted": metadata.describe(chunk).timelines[ROW].is_sorted,
        "timeline_sorted": _sorted(chunk),
    }


def _filled(expected: Case, whole: chunks.Chunk) -> Case:
    """What is expected, with the components that its rows leave out as the nulls that they are."""
    nulls = dict.fromkeys(name[2:] for name in whole.datatypes)
    rows = [{**row, "c": {**nulls, **row["c"]}} for row in expected.get("rows", ())]
    return {**expected, "rows": rows} if "rows" in expected else expected


def _sorted(chunk: chunks.Chunk) -> dict[str, bool]:
    known = metadata.describe(chunk).timelines
    return {name[2:]: each.is_sorted for name, each in known.items() if name != ROW}


def sequence(case: Case) -> None:
    """A case of `cache_sequences`: every question is asked of what was inserted before it, as often as it says."""
    check_known(case, {"steps"})
    stored = list[Case]()
    for number, step in enumerate(case["steps"], start=1):
        check_known(step, {"insert", "query", "repeat", "expect"})
        if "insert" in step:
            stored.append(step["insert"])
            continue
        for _ in range(step.get("repeat", 1)):
            try:
                with _store_of(stored, [step["query"]]) as store:
                    _ask_index(stored, step["query"], step["expect"], store)
            except AssertionError as error:
                raise AssertionError(f"step {number}: {error}") from error


def _ask_index(stored: list[Case], query: Case, expected: Any, store: ChunkStore) -> None:
    """Ask of the collection, of the law, and of the index that the inserts make: all must say the same."""
    _ask(stored, query, expected, store)
    if query["kind"] != "latest_at":
        return
    rows = {each["id"]: _chunk(each).rows for each in stored}
    for component in query.get("components", [query.get("component")]):
        asked, static = _question(stored, query, component)
        order = _index(stored, {**query, "component": component}).falling(query["at"])
        found = asked.static(static) or latest.latest_of(order, rows.__getitem__, asked, query["at"]).row
        _same(component or "row", _latest(stored, query, component), None if found is None else _answer(found, asked))


def _chunk(stored: Case, more: Iterable[str] = ()) -> chunks.Chunk:
    """A chunk of the vectors; `more` are columns that count as timelines too."""
    check_known(stored, {"id", "key", "rows", "dtypes", "bytes", "row_bytes"})
    for row in stored["rows"]:
        check_known(row, {"row", "t", "c", "bytes", "row_bytes"})
    names = {name for row in stored["rows"] for name in row["c"]} | set(stored.get("dtypes", ()))
    return chunks.Chunk(
        (stored["key"],),
        frozenset({f"t:{name}" for row in stored["rows"] for name in row["t"]} | set(more)),
        tuple(
            chunks.Row(
                {ROW: row["row"]}
                | {f"t:{name}": time for name, time in row["t"].items()}
                | {f"c:{name}": value for name, value in row["c"].items()}
            )
            for row in stored["rows"]
        ),
        {f"c:{name}": stored.get("dtypes", {}).get(name, "f64") for name in names},
    )


def _same(what: str, expected: Any, found: Any) -> None:
    assert expected == found, f"{what}: expected {expected}, found {found}"


KINDS: dict[str, Callable[[Case], None]] = {
    "batcher_cases": batcher,
    "metadata_cases": described,
    "latest_at_cases": latest_at,
    "range_cases": in_range,
    "index_cases": indexed,
    "concat_cases": joined,
    "cache_sequences": sequence,
}

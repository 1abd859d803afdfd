"""The vectors of chunks, that their adapters can fail, and that they drive the modules themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.chunks import KINDS
from tidemark.arrow import latest as kernel
from tidemark.arrow import winners
from tidemark.model.chunk import chunk, cuts, forest, index, latest, law, metadata

pytestmark = pytest.mark.pure
FILES = [
    json.loads((Path(__file__).parent / "vectors" / f"{name}.json").read_text()) for name in ("chunks", "chunks_own")
]
CASES = [(kind, case) for file in FILES for kind in KINDS for case in file[kind]]
each_case = pytest.mark.parametrize(
    ("kind", "case"), CASES, ids=lambda value: value["id"] if isinstance(value, dict) else value
)

DRIVEN = {
    "batcher_cases": [(cuts.Appender, "appended"), (cuts, "reasons_before"), (cuts, "reasons_after")],
    "metadata_cases": [(metadata, "describe")],
    "latest_at_cases": [
        *[(latest, "latest_at"), (latest, "opening_order"), (latest, "may_stop"), (winners, "newest")],
        *[
            (kernel, "search"),
            (index.IntervalIndex, "falling"),
            (forest.Forest, "falling"),
            (forest.Descent, "sharpen"),
        ],
    ],
    "range_cases": [(latest, "in_range"), (law, "meets_spans")],
    "index_cases": [(forest.Forest, "inserted"), (metadata, "describe")],
    "concat_cases": [(chunk, "joined")],
    "cache_sequences": [(latest, "latest_at"), (latest, "latest_of"), (forest.Forest, "inserted"), (winners, "newest")],
}
"""Per kind what its cases must run through."""


@each_case
def test_chunks(kind: str, case: dict[str, Any]):
    KINDS[kind](case)


@pytest.mark.parametrize(
    ("kind", "owner", "name"), [(kind, *driven) for kind in DRIVEN for driven in DRIVEN[kind]], ids=str
)
def test_the_adapters_reach_what_production_runs(kind: str, owner: object, name: str, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"{name} was called")

    monkeypatch.setattr(owner, name, broken)
    for case in FILES[0][kind]:
        if name == "reasons_before" and case["config"].get("flush_num_rows") == 0:
            continue  # every chunk ends with its first row, so no row comes after one
        with pytest.raises(RuntimeError, match=f"{name} was called"):
            KINDS[kind](case)


def test_each_question_of_an_index_reaches_it(monkeypatch: pytest.MonkeyPatch):
    for name, kind in (("falling", "latest_at"), ("overlapping", "range")):
        with monkeypatch.context() as patched:
            patched.setattr(forest.Forest, name, None)
            asked = [case for _, case in CASES if any(q.get("kind") == kind for q in case.get("queries", ()))]
            assert asked
            for case in asked:
                with pytest.raises(TypeError):
                    KINDS["index_cases"](case)


def changed(value: Any) -> Any:
    """Another value of the same shape."""
    if isinstance(value, dict):
        return {name: changed(each) for name, each in value.items()}
    if isinstance(value, list):
        return (
            [*value[1:], 987]
            if value and not isinstance(value[0], dict | list)
            else [*value, value[0] if value else 987]
        )
    if isinstance(value, bool):
        return not value
    return 987 if value is None or isinstance(value, int | float) else "other"


def wrong(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The case with one expectation after the other made wrong."""
    own = [
        {
            **case,
            name: {**case[name], part: changed(case[name][part])}
            if isinstance(case[name], dict)
            else changed(case[name]),
        }
        for name in case
        if name.startswith("expect") and case[name] != {}
        for part in (case[name] if isinstance(case[name], dict) else (None,))
        if not isinstance(case[name], dict) or case[name][part] != {}
    ]
    if "expected_seed" in case:
        own = [
            {
                **case,
                "expected_seed": [
                    *case["expected_seed"][:at],
                    {**piece, name: changed(piece[name])},
                    *case["expected_seed"][at + 1 :],
                ],
            }
            for at, piece in enumerate(case["expected_seed"])
            for name in piece
            if name != "flush" and piece[name] != {}
        ]
    for at, query in enumerate(case.get("queries", ())):
        for name in ("expect", "exact", "must_include"):
            if query.get(name) is not None or (name == "expect" and name in query):
                value = changed(query[name])
                own.append(
                    {**case, "queries": [*case["queries"][:at], {**query, name: value}, *case["queries"][at + 1 :]]}
                )
    for at, step in enumerate(case.get("steps", ())):
        if "expect" in step:
            step = {**step, "expect": changed(step["expect"])}
            own.append({**case, "steps": [*case["steps"][:at], step, *case["steps"][at + 1 :]]})
    for name, lengths in case.get("max_interval_length", {}).items():
        own.append({**case, "max_interval_length": {name: changed(lengths)}})
    return own


@each_case
def test_no_wrong_expectation_passes(kind: str, case: dict[str, Any]):
    altered = wrong(case)
    assert altered
    for other in altered:
        with pytest.raises((AssertionError, TypeError, KeyError)):
            KINDS[kind](other)


def places(value: Any) -> list[dict[str, Any]]:
    """The objects of a case whose fields are words: not the values by name of a timeline or a component."""
    if isinstance(value, list):
        return [each for one in value for each in places(one)]
    if not isinstance(value, dict):
        return []
    by_name = {"t", "c", "times", "sorted", "columns", "dtypes", "whole", "per_component", "timeline_sorted"}
    by_name |= {"timeline_range", "component_range", "component_row_id_range", "expect", "expect_times"}
    by_name |= {"expect_timeline_sorted"}
    return [value, *(each for name, one in value.items() if name not in by_name for each in places(one))]


@each_case
def test_a_field_that_is_not_known_fails_by_its_name(kind: str, case: dict[str, Any]):
    copy = json.loads(json.dumps(case))
    for place in places(copy):
        place["unheard_of"] = 1
        with pytest.raises(AssertionError, match="unheard_of"):
            KINDS[kind](copy)
        del place["unheard_of"]

"""The merge of two batches, and of batches of several parts, by the execution of a compaction."""

from __future__ import annotations

from typing import Any

from tests.conformance.codes import check_error
from tests.conformance.plain import COLLECTION, frontier, frontier_of, plain_rows, read
from tests.conformance.stand import Stand, applied
from tests.conformance.validators import description
from tidemark.arrow.kernels.merge import Tally, merged
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.schema import updates_schema
from tidemark.errors import Corruption
from tidemark.model import admission, invariants
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, Part, TraceBatch
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import MAX_TIME
from tidemark.plan.compact import CompactionRequest
from tidemark.plan.tasks import KeyRange, MergeTask
from tidemark.storage.sidecars import parts_table

Case = dict[str, Any]


def compact_request(case: Case) -> None:
    """Two batches of one part each, or an error."""
    expected = case["expect"]
    try:
        found = _answer(*_compacted(case))
    except Corruption as error:
        if "error" not in expected:
            raise
        check_error(expected["error"], error)
        return
    assert "error" not in expected, f"expected error {expected['error']['code']}, it was merged"
    _compare(expected["merged"], found)


def compact_multipart(case: Case) -> None:
    """Two batches of several parts; the level counts rows, and a cap on the size of parts changes only their number."""
    expected = case["expect"]
    stand, state, request, batch = _compacted(case)
    found = _answer(stand, state, request, batch)
    described = {"lower", "upper", "since", "updates"}
    _compare({name: expected[name] for name in described}, found)
    if "row_model_level" in expected:
        _compare({"level": expected["row_model_level"]}, found)
    if "default_part_size" in expected:
        _compare({"parts": expected["default_part_size"]["parts"]}, {"parts": batch.part_count})
    if tiny := expected.get("tiny_part_size"):
        parts = _cut(stand, request, tiny["part_max_key_value_bytes"])
        rows = plain_rows(read(stand.store, parts))
        _compare({"parts": tiny["parts"], "updates": expected["updates"]}, {"parts": len(parts), "updates": rows})


def _compacted(case: Case) -> tuple[Stand, Arrangement, CompactionRequest, TraceBatch]:
    """The request made of a case, executed; Corruption if it may not be asked for."""
    stand = Stand()
    inputs = [
        stand.trace(description(value), value["level"], value.get("parts", [value.get("updates", [])]))
        for value in (case["b0"], case["b1"])
    ]
    function = CompactionFunction(frontier_of(case["since"]))
    invariants.check(admission.of_merge([batch.description for batch in inputs], function))
    lower, upper = inputs[0].description.lower, inputs[1].description.upper
    request = CompactionRequest(tuple(inputs), Description(lower, upper, function.since))
    state = Arrangement(
        COLLECTION, complete_below=upper, seal=upper, since=function.since, trace=tuple(inputs) if lower == 0 else ()
    )
    state, change = stand.merged(state, request)
    return stand, applied(state, change) if state.trace else state, request, change.batch


def _answer(stand: Stand, state: Arrangement, request: CompactionRequest, batch: TraceBatch) -> dict[str, Any]:
    assert not state.trace or state.trace == (batch,)
    promised = batch.description
    return {
        "lower": promised.lower,
        "upper": promised.upper,
        "since": frontier(promised.since),
        "level": batch.level,
        "updates": plain_rows(read(stand.store, parts_table.parts_of(stand.store, [batch]))),
    }


def _cut(stand: Stand, request: CompactionRequest, most: int) -> tuple[Part, ...]:
    """The parts of the same merge, none with more bytes of keys and values."""
    parts = parts_table.parts_of(stand.store, request.inputs)
    task = MergeTask(COLLECTION, parts, KeyRange(), 0, MAX_TIME, request.description.function, "cut")
    schema = updates_schema(COLLECTION)
    with PartWriter(stand.store, "cut", schema, key_width=1, facts=False, part_bytes=most) as writer:
        for rows in merged(stand.store, task, Tally()):
            writer.write(rows)
        return writer.close()


def _compare(expected: dict[str, Any], found: dict[str, Any]) -> None:
    for name, value in expected.items():
        assert found[name] == value, f"{name}: expected {value}, found {found[name]}"


KINDS = {"compact_request": compact_request, "compact_multipart": compact_multipart}

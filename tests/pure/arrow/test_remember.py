"""Merging remembered facts: what they add up to stays, counted in a dictionary, whatever is merged with what."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.drawn import unsealed_batch
from tests.pure.arrow.samples import KEYED
from tests.pure.arrow.test_resolve_retracted import FIRST, LAST, Said, parts_of, sources
from tests.support.budget import laws
from tidemark.arrow.kernels.remember import KeptTally, remaining_facts, remember_range
from tidemark.arrow.kernels.retracted import retracts
from tidemark.arrow.parts.reader import read_groups
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.plan.remember import RememberRequest, check
from tidemark.plan.tasks import KeyRange, RememberTask, WriteAnswer
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


def come_to(store: MemoryStore, parts: tuple[Part, ...], horizon: int) -> Counter[tuple[object, ...]]:
    sums: Counter[tuple[object, ...]] = Counter()
    for part in parts:
        for rows in read_groups(store, part):
            for row in rows.to_pylist():
                if row["_event_time"] >= horizon:
                    del row["_time"]
                    sums[tuple(row.values())] += -1 if retracts(part) else 1
    return Counter({said: count for said, count in sums.items() if count})


def merged(store: MemoryStore, parts: tuple[Part, ...], horizon: int, cuts: list[int]) -> list[WriteAnswer]:
    bounds = [None, *((cut,) for cut in sorted(set(cuts))), None]
    ranges = [KeyRange(lower, upper) for lower, upper in pairwise(bounds)]
    return [remember_range(store, RememberTask(KEYED, parts, keys, horizon, "merged")) for keys in ranges]


@laws
@given(sources(), st.integers(1, 3), st.integers(FIRST - 1, LAST), st.lists(st.integers(1, 4), max_size=2))
def test_what_facts_come_to_stays_and_nothing_else(
    lines: list[Said], batches: int, horizon: int, cuts: list[int]
) -> None:
    store = MemoryStore()
    parts = parts_of(store, lines, batches)
    if not parts:
        return
    answers = merged(store, parts, horizon, cuts)
    written = tuple(part for answer in answers for part in answer.parts)
    assert come_to(store, written, horizon) == come_to(store, parts, horizon)
    assert sum(part.rows for part in written) == sum(map(abs, come_to(store, parts, horizon).values()))
    assert {(part.first_time, part.last_time) for part in written} <= {(0, 0)}
    total = sum(part.rows for part in parts)
    request = RememberRequest((unsealed_batch(["b", "0..9", f"rows={total}"], 0),), 1, horizon, 0)
    check(request, parts, answers, KEYED.schema)
    with pytest.raises(Corruption, match="its inputs hold"):
        check(replace(request, inputs=(*request.inputs, *request.inputs)), parts, answers, KEYED.schema)
    wrong = replace(answers[0], digest_checked=answers[0].digest_checked ^ 1)
    with pytest.raises(Corruption, match="stays; refused"):
        check(request, parts, [*answers[1:], wrong], KEYED.schema)
    with pytest.raises(Corruption, match="the merge read"):
        check(request, parts, [*answers[1:], replace(answers[0], digest_read=answers[0].digest_read ^ 1)], KEYED.schema)


@laws
@given(sources(), st.integers(1, 8))
def test_however_little_is_in_memory(lines: list[Said], buffered: int) -> None:
    store = MemoryStore()
    task = RememberTask(KEYED, parts_of(store, lines, 2), KeyRange(), FIRST, "merged")
    small, large = (
        [row for rows in remaining_facts(store, task, KeptTally(), buffered_rows=some) for row in rows.to_pylist()]
        for some in (buffered, 1000)
    )
    assert small == large

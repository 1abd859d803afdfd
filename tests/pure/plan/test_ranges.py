"""Key ranges: cutting a merge into tasks loses no row, and skipping row groups skips none that matters."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.row_groups import groups_holding
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.chunk.law import meets_keys
from tidemark.model.key import NULL
from tidemark.plan.ranges import (
    TASK_ROWS,
    bundled,
    even_target,
    groups_among,
    groups_within,
    most_alike,
    ranges_between,
    ranges_of_groups,
    split_keys,
    split_within,
)
from tidemark.plan.tasks import KeyRange

keys = st.tuples(st.integers(0, 6) | st.just(NULL), st.sampled_from(["a", "b", NULL]))
files = st.lists(keys, min_size=1, max_size=20).map(sorted)


def part_of(rows: list[tuple], group_rows: int, size: int = 1) -> Part:
    """A part of these keys, its sparse index as a writer makes it."""
    groups = tuple((rows[at], len(rows[at : at + group_rows])) for at in range(0, len(rows), group_rows))
    return Part(ObjectRef("x", size, "0"), len(rows), 0, groups, rows[-1], 0, 0, 0, 0)


def groups_of(rows: list[tuple], group_rows: int) -> list[list[tuple]]:
    return [rows[at : at + group_rows] for at in range(0, len(rows), group_rows)]


def inside(key: tuple, wanted: KeyRange) -> bool:
    return (wanted.lower is None or key >= wanted.lower) and (wanted.upper is None or key < wanted.upper)


@given(st.lists(files, max_size=4), st.integers(1, 5), st.integers(1, 30))
def test_ranges_follow_one_another_and_hold_every_key_once(several, group_rows, target):
    parts = [part_of(rows, group_rows) for rows in several]
    ranges = split_keys(parts, target_rows=target)
    assert (ranges[0].lower, ranges[-1].upper) == (None, None)
    assert all(left.upper == right.lower for left, right in pairwise(ranges))
    assert all(r.lower is None or r.upper is None or r.lower < r.upper for r in ranges)
    for rows, part in zip(several, parts, strict=True):
        for key in rows:
            holding = [wanted for wanted in ranges if inside(key, wanted)]
            assert len(holding) == 1
            assert meets_keys(part, holding[0])


@given(st.lists(files, max_size=4), st.integers(1, 5), st.integers(1, 30))
def test_ranges_may_leave_what_leads_keys_whole(several, group_rows, target):
    parts = [part_of(rows, group_rows) for rows in several]
    ranges = split_within(KeyRange(), parts, target_rows=target, leading=1)
    for leads in range(7):
        holding = {at for at, wanted in enumerate(ranges) for of in "ab" if inside((leads, of), wanted)}
        assert len(holding) == 1, "of no first column keys are in two"
    of_each = [sum(row[0] == leads for rows in several for row in rows) for leads in range(7)]
    assert most_alike(parts, 1) >= max(of_each) - len(parts) * group_rows


def test_ranges_of_wide_rows_hold_fewer():
    """A part of 10 bytes a row beside one of 1,000: where the wide rows are, ranges are cut by their bytes."""
    narrow = part_of([(n, "a") for n in range(100)], 5, size=1_000)
    wide = part_of([(n, "a") for n in range(50, 60)], 1, size=10_000)
    ranges = split_keys([narrow, wide], target_rows=1_000, target_bytes=2_500)
    assert [each.upper for each in ranges] == [(53, "a"), (56, "a"), (59, "a"), None]
    assert split_keys([narrow, wide], target_rows=1_000) == [KeyRange()]


@given(st.integers(0, 5 * TASK_ROWS), st.integers(1, TASK_ROWS), st.integers(1, 20))
def test_tasks_of_like_size_are_neither_small_nor_large(rows, least, tasks):
    target = even_target(rows, least=least, tasks=tasks)
    count = -(-rows // target)
    assert target <= TASK_ROWS
    assert count <= max(tasks, -(-rows // TASK_ROWS))
    assert rows == 0 or target >= min(rows, 2 * least // 3, TASK_ROWS // 2)


@given(st.integers(1, 400), st.integers(1, 50))
def test_ranges_are_of_like_size(rows, target):
    """Of rows of which each is a group: one and a half targets at most, and the same but for the last."""
    (part,) = [part_of([(n, "a") for n in range(rows)], 1)]
    uppers = [0 if keys.lower is None else keys.lower[0] for keys in split_keys([part], target_rows=target)]
    sizes = [after - before for before, after in pairwise([*uppers, rows])]
    assert max(sizes) <= 3 * target / 2
    assert len({*sizes[:-1]}) <= 1
    assert len(sizes) <= max(1, round(rows / target + 0.001))


@given(files, st.integers(1, 5), st.none() | keys, st.none() | keys)
def test_no_row_group_of_a_range_is_skipped_and_few_others_are_read(rows, group_rows, lower, upper):
    part, wanted = part_of(rows, group_rows), KeyRange(lower, upper)
    read = groups_within(part, wanted)
    needed = [at for at, group in enumerate(groups_of(rows, group_rows)) if any(inside(key, wanted) for key in group)]
    assert set(needed) <= set(read)
    assert len(read) <= len(needed) + 1
    if needed:
        assert meets_keys(part, wanted)


bounds = st.sets(keys, max_size=8).map(sorted)


@given(files, st.integers(1, 5), bounds)
def test_the_row_groups_of_several_ranges_are_those_of_each(rows, group_rows, cuts):
    part, ranges = part_of(rows, group_rows), every_second(cuts)
    assert groups_among(part, ranges) == sorted({at for keys in ranges for at in groups_within(part, keys)})


@given(st.lists(files, max_size=3), st.integers(1, 5), bounds, st.integers(1, 12))
def test_bundles_hold_what_their_ranges_do_in_their_order(several, group_rows, cuts, target):
    parts, ranges = [part_of(rows, group_rows) for rows in several], every_second(cuts)
    bundles = bundled(ranges, parts, target_rows=target)
    flat = [keys for bundle in bundles for keys in bundle]
    assert all(left.upper <= right.lower for left, right in pairwise(flat))
    for key in (key for rows in several for key in rows):
        assert sum(inside(key, keys) for keys in flat) == sum(inside(key, keys) for keys in ranges)
    assert all(len(bundle) == 1 or count_in(parts, bundle) <= target for bundle in bundles)


@given(st.lists(files, max_size=3), st.integers(1, 5), st.sets(st.integers(0, 6), min_size=1), st.integers(1, 12))
def test_bundles_may_leave_what_leads_keys_whole(several, group_rows, leads, target):
    parts = [part_of(rows, group_rows) for rows in several]
    bundles = bundled([KeyRange((of,), (of + 1,)) for of in sorted(leads)], parts, target_rows=target, leading=1)
    for lead in range(7):
        holding = {at for at, bundle in enumerate(bundles) for of in "ab" if any(inside((lead, of), k) for k in bundle)}
        assert len(holding) == (lead in leads), "of no first column keys are in two, and none that was not asked for"


def every_second(cuts: list[tuple]) -> list[KeyRange]:
    """Every second of the ranges between some keys."""
    return [KeyRange(lower, upper) for lower, upper in zip(cuts[::2], cuts[1::2], strict=False)]


def count_in(parts: list[Part], ranges: tuple[KeyRange, ...]) -> int:
    reached = [(part, [keys for keys in ranges if meets_keys(part, keys)]) for part in parts]
    return sum(part.groups[at][1] for part, near in reached if near for at in groups_among(part, near))


@given(files, st.integers(1, 5), st.sets(keys).map(sorted))
def test_every_row_group_that_holds_a_key_is_found(rows, group_rows, touched):
    part = part_of(rows, group_rows)
    needed = {at for at, group in enumerate(groups_of(rows, group_rows)) if set(group) & set(touched)}
    found = groups_holding(part, touched)
    assert needed <= set(found)
    assert found == sorted(set(found))


@given(st.lists(files, max_size=4), st.integers(1, 5), st.data())
def test_ranges_of_row_groups_hold_all_their_keys_and_have_gaps_between_them(several, group_rows, data):
    parts = [part_of(rows, group_rows) for rows in several]
    numbers = [list(range(len(part.groups))) for part in parts]
    wanted = [sorted(data.draw(st.sets(st.sampled_from(some)))) for some in numbers]
    ranges = ranges_of_groups(zip(parts, wanted, strict=True))
    assert all(one.upper is not None and one.upper < other.lower for one, other in pairwise(ranges))
    for rows, part, groups in zip(several, parts, wanted, strict=True):
        found = groups_among(part, ranges) if ranges else []
        assert set(groups) <= set(found)
        contained = [key for at in groups for key in groups_of(rows, group_rows)[at]]
        assert all(any(inside(key, one) for one in ranges) for key in contained)


@given(
    st.lists(files, max_size=3), st.integers(1, 5), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6))), st.data()
)
def test_ranges_between_prefixes_hold_all_their_keys_and_do_not_overlap(several, group_rows, drawn, data):
    firsts = sorted(key for rows in several for key, _ in part_of(rows, group_rows).groups)
    ends = sorted({end for pair in drawn for end in pair})
    spans = [((low,), (high,)) for low, high in zip(ends[::2], ends[1::2], strict=False)]
    most = data.draw(st.integers(1, 4))
    ranges = ranges_between(spans, firsts, most)
    assert len(ranges) <= most
    assert all(one.upper is not None and one.upper <= other.lower for one, other in pairwise(ranges))
    for key in (key for rows in several for key in rows):
        if any(low <= key[:1] <= high for low, high in spans):
            assert any(inside(key, one) for one in ranges)

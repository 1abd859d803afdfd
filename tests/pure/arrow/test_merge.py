"""The streaming merge, against the model's laws."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, NULLABLE, SMALL, as_updates, keys, of_updates, read, updates, write
from tests.support.budget import laws
from tidemark.arrow.kernels.merge import Tally, chained, merge_range, merged, shared
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.schema import updates_schema
from tidemark.errors import InvalidUsage
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.model.frontier import CompactionFunction
from tidemark.model.key import key_scalar
from tidemark.model.update import Row, Update, advance, consolidate, sort_key
from tidemark.plan.tasks import KeyRange, MergeTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

FOREVER = 2**63 - 1


def task_of(of: Collection, parts: tuple[Part, ...], **changes: object) -> MergeTask:
    function = CompactionFunction(changes.pop("since", 0))  # type: ignore[arg-type]
    asked = {"keys": KeyRange(), "lower": 0, "upper": FOREVER, "function": function, "prefix": "out"} | changes
    return MergeTask(of, parts, **asked)  # type: ignore[arg-type]


def written(of: Collection, store: MemoryStore, inputs: list[list[Update]], group_rows: int = 3) -> tuple[Part, ...]:
    tables = (of_updates(of, some) for some in inputs)
    return tuple(part for table in tables for part in write(store, of, table, group_rows=group_rows))


def streamed(store: MemoryStore, task: MergeTask, buffered: int) -> tuple[list[Update], Tally]:
    """What a merge gives with little memory: few rows of each input, few bytes of a round at once."""
    tally = Tally()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.kernels.merge.PIECE_BYTES", 40 * buffered)
        return as_updates(task.collection, merged(store, task, tally, buffered_rows=buffered)), tally


words: st.SearchStrategy[Row] = st.tuples(st.sampled_from([None, "a"]))
time = st.integers(0, 6)
# Few keys and values, so that groups straddle row groups, parts and buffers.
close = st.builds(Update, keys(SMALL, 1), words, time, time, st.integers(-2, 2))
dense = st.lists(st.lists(close, max_size=14), max_size=4)


@laws
@given(dense, st.integers(1, 4), st.integers(1, 12), st.integers(0, 6), st.integers(0, 5), st.integers(0, 7))
def test_a_merge_is_advance_and_consolidate(
    inputs: list[list[Update]], group_rows: int, buffered: int, since: int, lower: int, upper: int
) -> None:
    store = MemoryStore()
    parts = written(SMALL, store, inputs, group_rows)
    found, tally = streamed(store, task_of(SMALL, parts, since=since, lower=lower, upper=upper), buffered)
    inside = [u for some in inputs for u in some if lower <= u.time < upper]
    assert found == consolidate(advance(inside, CompactionFunction(since)))
    assert tally.rows == len(inside)
    assert (
        tally.digest
        == digest(of_updates(SMALL, found))
        == digest(of_updates(SMALL, advance(inside, CompactionFunction(since))))
    )


@laws
@given(dense, st.integers(1, 4), st.integers(1, 12), st.integers(0, 5), st.integers(0, 7))
def test_rounds_that_are_woven_are_consolidated(
    inputs: list[list[Update]], group_rows: int, buffered: int, lower: int, upper: int
) -> None:
    """As rounds of few rows beside many are, here each of them, also where it ends in the middle of a key."""
    store = MemoryStore()
    task = task_of(SMALL, written(SMALL, store, inputs, group_rows), lower=lower, upper=upper)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.rows.woven.LARGE", 0)
        patch.setattr("tidemark.arrow.rows.woven.MOST_TOUCHED", 1)
        found, _ = streamed(store, task, buffered)
    assert found == consolidate([u for some in inputs for u in some if lower <= u.time < upper])


@laws
@given(dense, st.integers(1, 4), st.integers(0, 6))
def test_what_cancels_is_separated(inputs: list[list[Update]], group_rows: int, upto: int) -> None:
    store = MemoryStore()
    parts = written(SMALL, store, inputs, group_rows)
    answer = merge_range(store, task_of(SMALL, parts, separate_upto=upto))
    whole = consolidate([u for some in inputs for u in some])
    groups = [list(some) for _, some in groupby(whole, key=lambda u: sort_key(u)[:2])]
    expected: dict[bool, list[Update]] = {False: [], True: []}
    for some in groups:
        gone = cancelling(some, upto)
        assert sum(u.diff for u in gone) == 0
        for u in some:
            expected[u in gone] += [u]
    found = {
        cancels: as_updates(SMALL, read(store, [part for part in answer.parts if part.cancels == cancels]))
        for cancels in (False, True)
    }
    assert found == expected


def cancelling(equal: list[Update], upto: int) -> list[Update]:
    """Of updates of one key and value, in order, those that cancel: what is taken away by `upto`, and the first that
    was put there, as far as both add up to nothing."""
    settled = [u for u in equal if u.event_time <= upto]
    taken, put = [u for u in settled if u.diff < 0], [u for u in settled if u.diff > 0]
    for count in range(1, len(put) + 1):
        if sum(u.diff for u in [*taken, *put[:count]]) == 0:
            return [*taken, *put[:count]]
    return []


def test_what_cancels_is_separated_whole_where_a_round_ends_in_it() -> None:
    """Each round is of a few rows; of a value that is longer than may wait, pieces are separated."""
    store = MemoryStore()
    rows = [Update((key,), ("v",), at, at, 1 if at < 3 else -1) for key in range(40) for at in range(6)]
    parts = written(SMALL, store, [rows[::2], rows[1::2]], 1)
    for most, left_over in ((6, 0), (1, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merged, "__kwdefaults__", {"buffered_rows": 4})
            patch.setattr("tidemark.arrow.kernels.merge.VALUE_ROWS", most)
            answer = merge_range(store, task_of(SMALL, parts, separate_upto=9))
        left = [u for part in answer.parts if not part.cancels for u in as_updates(SMALL, read(store, [part]))]
        assert sum(u.diff for u in left) == 0
        assert (len(left) > 0) == left_over


def test_sums_beyond_64_bits_cancel_exactly() -> None:
    store, much = MemoryStore(), 2**62
    diffs = [much, much, much, much, -much, -much, -much, -much]
    rows = [Update((1,), ("v",), at, at, diff) for at, diff in enumerate(diffs)]
    # As 64-bit numbers the first four add up to nothing, and so would nothing and they.
    parts = written(SMALL, store, [rows[:4], rows[4:]], 4)
    (cancelled,) = merge_range(store, task_of(SMALL, parts, separate_upto=9)).parts
    assert (cancelled.cancels, cancelled.rows) == (True, 8)
    (kept,) = merge_range(store, task_of(SMALL, parts, separate_upto=3)).parts
    assert (kept.cancels, kept.rows) == (False, 8)


@laws
@given(st.lists(updates(APPEND, most=10), max_size=3), st.integers(0, 13))
def test_all_types_nulls_and_nan_merge(inputs: list[list[Update]], since: int) -> None:
    store = MemoryStore()
    parts = written(APPEND, store, inputs)
    found, _ = streamed(store, task_of(APPEND, parts, since=since), 8)
    assert found == consolidate(advance([u for some in inputs for u in some], CompactionFunction(since)))


@laws
@given(st.lists(updates(NULLABLE), max_size=3), st.lists(keys(NULLABLE), max_size=3, unique=True), st.integers(0, 6))
def test_ranges_of_keys_with_nulls_merge_separately(inputs: list[list[Update]], cuts: list[Row], since: int) -> None:
    merged_separately(NULLABLE, inputs, cuts, since)


@laws
@given(st.lists(updates(NULLABLE), max_size=3), st.lists(updates(NULLABLE), max_size=3), st.integers(0, 6))
def test_parts_of_before_keys_could_be_null_merge_with_those_of_now(
    before: list[list[Update]], now: list[list[Update]], since: int
) -> None:
    """Their fields are `required` in Parquet."""
    store = MemoryStore()
    before = [[u for u in some if None not in u.key] for some in before]
    strict = updates_schema(replace(NULLABLE, origin=SMALL.origin))
    assert not any(strict.field(at).nullable for at in range(len(NULLABLE.key)))
    old = [write(store, NULLABLE, of_updates(NULLABLE, some).cast(strict)) for some in before]
    parts = (*(part for some in old for part in some), *written(NULLABLE, store, now))
    found, _ = streamed(store, task_of(NULLABLE, parts, since=since), 8)
    assert found == consolidate(advance([u for some in (*before, *now) for u in some], CompactionFunction(since)))


def merged_separately(of: Collection, inputs: list[list[Update]], cuts: list[Row], since: int) -> None:
    store = MemoryStore()
    parts = written(of, store, inputs)
    bounds = [None, *sorted(tuple(map(key_scalar, cut)) for cut in cuts), None]
    found: list[Update] = []
    total = 0
    for lower, upper in pairwise(bounds):
        some, tally = streamed(store, task_of(of, parts, keys=KeyRange(lower, upper), since=since), 6)
        found += some
        total += tally.rows
    everything = [u for some in inputs for u in some]
    assert found == consolidate(advance(everything, CompactionFunction(since)))
    assert total == len(everything)


def test_the_answer_tells_what_was_read_and_written() -> None:
    store = MemoryStore()
    inputs = [[Update((n % 7,), (f"{n}",), n, n, 1) for n in range(batch, 90, 3)] for batch in range(3)]
    parts = written(SMALL, store, inputs)
    answer = merge_range(store, task_of(SMALL, parts, lower=10, upper=80, since=40))
    expected = consolidate(advance([u for some in inputs for u in some if 10 <= u.time < 80], CompactionFunction(40)))
    assert as_updates(SMALL, read(store, answer.parts)) == expected
    assert answer.rows_read == 70
    assert answer.digest_read == sum(part.digest for part in answer.parts) % 2**64
    assert all(part.file.key.startswith("out/") for part in answer.parts)
    assert answer.bytes_read > sum(part.file.bytes for part in parts) / 2


def test_what_cancels_out_leaves_no_part() -> None:
    store = MemoryStore()
    parts = written(SMALL, store, [[Update((1,), ("a",), 1, 1, 1)], [Update((1,), ("a",), 3, 3, -1)]])
    answer = merge_range(store, task_of(SMALL, parts, since=3))
    assert (answer.parts, answer.rows_read, answer.digest_read) == ((), 2, 0)


def test_a_group_whose_halves_are_in_two_row_groups_leaves_as_one() -> None:
    """One (key, value) over two row groups of one input, forwarded to one time in different rounds."""
    store = MemoryStore()
    older = [Update((1,), ("a",), t, t, 1) for t in range(6)]
    newer = [Update((1,), ("a",), 6, 6, 1), Update((2,), ("b",), 7, 7, 1)]
    parts = written(SMALL, store, [older, newer])
    found, _ = streamed(store, task_of(SMALL, parts, since=9), 1)
    assert found == [Update((1,), ("a",), 9, 9, 7), Update((2,), ("b",), 9, 9, 1)]


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("buffered", [1, 2, 3, 100])
def test_forwarding_that_changes_the_order_by_event_time_is_sorted_again(buffered: int, runs: int) -> None:
    """Also where all that is forwarded is an instant below since."""
    for times in ((1, 2, 3, 4), (5, 6, 6, 6)):
        store = MemoryStore()
        some = [Update((1,), ("a",), t, e, 1) for t, e in zip(times, (20, 10, 20, 6), strict=True)]
        parts = written(SMALL, store, [some[run::runs] for run in range(runs)], 1)
        found, _ = streamed(store, task_of(SMALL, parts, since=6), buffered)
        assert found == [Update((1,), ("a",), 6, 6, 1), Update((1,), ("a",), 6, 10, 1), Update((1,), ("a",), 6, 20, 2)]


def test_rounds_keep_little_in_memory() -> None:
    """Of inputs far larger than memory no round holds more than the runs may buffer."""
    store = MemoryStore()
    inputs = [[Update((n,), ("w",), batch, batch, 1) for n in range(600)] for batch in range(3)]
    parts = written(SMALL, store, inputs, 5)
    batches = list(merged(store, task_of(SMALL, parts), Tally(), buffered_rows=30))
    assert sum(rows.num_rows for rows in batches) == 1800
    assert max(rows.num_rows for rows in batches) <= 60


def test_many_small_inputs_make_one_round() -> None:
    """What is known to be the end of its run bounds nothing: rounds do not multiply with inputs."""
    store = MemoryStore()
    parts = written(SMALL, store, [[Update((n,), ("w",), n, n, 1)] for n in range(50)])
    assert len(list(merged(store, task_of(SMALL, parts[::-1]), Tally()))) == 1


def test_sums_beyond_64_bits_are_refused_and_never_wrap() -> None:
    store = MemoryStore()
    most = Update((1,), ("a",), 1, 1, 2**63 - 1)
    parts = written(SMALL, store, [[most], [most._replace(diff=1)]])
    with pytest.raises(InvalidUsage, match=r"number 1, word 'a', .* add up to 9223372036854775808, beyond"):
        merge_range(store, task_of(SMALL, parts))
    assert not [key for key in store.objects if key.startswith("out/")]


def test_sums_that_only_pass_beyond_64_bits_on_the_way_are_exact() -> None:
    store = MemoryStore()
    some = [Update((1,), ("a",), 1, 1, diff) for diff in (2**63 - 1, 2**63 - 1, -(2**63), -5)]
    found, _ = streamed(store, task_of(SMALL, written(SMALL, store, [[u] for u in some])), 100)
    assert found == [Update((1,), ("a",), 1, 1, 2**63 - 7)]


def test_parts_that_follow_each_other_make_one_run() -> None:
    store = MemoryStore()
    inputs = [[Update((n,), ("w",), 0, 0, 1) for n in range(first, first + 20)] for first in (0, 100)]
    parts = written(SMALL, store, inputs)
    assert [len(chain) for chain in chained(reversed(parts))] == [len(parts)]
    shared = written(SMALL, store, [[Update((5,), (f"{n:02}",), 0, 0, 1) for n in range(20)]])
    assert len(chained(shared)) == len(shared) == 3


@given(st.lists(st.integers(0, 300), min_size=1, max_size=9), st.integers(9, 500))
def test_what_small_runs_do_not_need_of_memory_larger_ones_have(weights: list[int], room: int) -> None:
    shares = shared(weights, room)
    assert min(shares) >= 1
    assert sum(shares) <= room
    assert all(share <= max(1, weight) for share, weight in zip(shares, weights, strict=True))
    if sum(max(1, weight) for weight in weights) <= room:
        assert shares == [max(1, weight) for weight in weights]
    cut = [share for share, weight in zip(shares, weights, strict=True) if share < weight]
    assert all(share <= least + len(weights) for share in shares for least in cut)

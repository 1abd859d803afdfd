"""What tasks take is estimated before anything is opened, from what their parts and files are recorded to have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.world import collection
from tidemark.arrow.kernels.registry import KERNELS
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.chunk.cuts import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from tidemark.model.collection import Collection, Column, ColumnType, Format
from tidemark.model.frontier import CompactionFunction
from tidemark.model.interval import Interval
from tidemark.model.ledger import SourceFile
from tidemark.plan.task_size import (
    COSTS,
    MIB,
    SMALL_BYTES,
    SMALL_CPU_SECONDS,
    Density,
    Estimate,
    decoded_bytes,
    decoded_in_memory,
    decoded_in_time,
    estimate,
    is_small,
    size_of,
    sizes_of,
)
from tidemark.plan.tasks import (
    ALL_KEYS,
    ChecksumTask,
    Contributed,
    IngestTask,
    InspectTask,
    KeyRange,
    MergeTask,
    Reread,
    RereadTask,
    ResolveTask,
)


def part(rows: int, *, groups: int = 1, size: int | None = None) -> Part:
    each = tuple(((at,), rows // groups) for at in range(groups))
    return Part(ObjectRef("data/p", rows * 10 if size is None else size, ""), rows, 0, each, (groups,), 0, 1, 0, 1)


def ingest(*sizes: int, **changes: Any) -> IngestTask:
    files = tuple(SourceFile(str(at), size, "1") for at, size in enumerate(sizes))
    return IngestTask(collection(**changes), Interval(0, 10), files, 0, 0, 0, "b", "data/b")


def merge(parts: tuple[Part, ...], keys: KeyRange = ALL_KEYS) -> MergeTask:
    return MergeTask(collection(), parts, keys, 0, 10, CompactionFunction(0))


def figures(task: Any, density: Density | None = None) -> tuple[int, int, int, int]:
    size = size_of(task, density)
    assert size is not None
    return size.rows, size.bytes, size.objects, size.columns


def test_rows_and_bytes_of_parts_and_files_are_recorded_or_sampled() -> None:
    assert figures(ingest(100, 20), Density(0.5, 3.0)) == (60, 120, 2, 4)
    assert size_of(ingest(100, 20), Density(0.5, 3.0)) == replace(
        size_of(ingest(120)), rows=60, decoded=360, objects=2, columns=4
    )  # type: ignore[type-var]
    assert figures(merge((part(5), part(7)))) == (12, 120, 2, 4)
    assert figures(InspectTask(collection(), part(5), False)) == (5, 50, 1, 2)


def test_of_a_range_of_keys_only_the_row_groups_count_that_can_hold_them() -> None:
    parts = (part(1_000, groups=10),)
    assert figures(merge(parts, KeyRange((4,), (5,))))[0] == 200, "a key may end the group before its first"
    assert figures(merge(parts))[0] == 1_000


def test_facts_look_up_at_most_one_row_group_each_of_every_part_of_the_trace() -> None:
    task = ResolveTask(collection(), (part(2),), (part(1000, groups=10), part(60, groups=3)), ALL_KEYS, 0, 10, 0)
    assert figures(task)[:3] == (2 + 200 + 40, 20 + 2000 + 400, 3)
    assert {name: size.rows for name, size in sizes_of("resolve", task).items()} == {"resolve": 2, "lookup": 240}
    many = replace(task, facts=(part(500),))
    assert figures(many)[:2] == (500 + 1060, 5000 + 10600)


def test_a_file_that_is_read_again_costs_its_decoding_and_the_comparison() -> None:
    again = Reread("a", SourceFile("a", 100, "1"), 0, 0, 0)
    task = RereadTask(
        collection(), Interval(0, 1), (again,), (Contributed((part(9),), ()),), 0, CompactionFunction(0), "b", "p"
    )
    assert sizes_of("reread", task).keys() == {"ingest jsonl", "compared"}


WORDS = replace(collection(), value=(Column("v", ColumnType.STRING),))
NUMBERS = replace(collection(), value=(Column("v", ColumnType.INT),))


@pytest.mark.parametrize(
    ("declared", "stored", "expected"),
    [
        (NUMBERS, part(1_000), 1_000 * (2 * 8 + 24)),
        (WORDS, part(1_000, size=100_000), 400_000),
        (WORDS, part(1_000, size=90 * MIB), ROW_GROUP_BYTES),
        (WORDS, part(1_000, groups=4, size=1), 4 * ROW_GROUP_BYTES),
        (NUMBERS, part(4 * ROW_GROUP_ROWS, groups=4), 4 * ROW_GROUP_ROWS * 40),
    ],
    ids=[
        *("numbers by their width", "texts by what is stored", "at most a group's", "groups cut by bytes"),
        "cut by rows",
    ],
)
def test_decoded_bytes_follow_from_columns_and_how_row_groups_were_cut(
    declared: Collection, stored: Part, expected: int
) -> None:
    assert decoded_bytes(declared, stored, stored.rows, len(stored.groups)) == expected


def test_the_seconds_of_tasks_add_up_and_their_memory_does_not() -> None:
    one, three = (estimate("inspect", [InspectTask(collection(), part(1_000), False)] * n) for n in (1, 3))
    assert one is not None
    assert three is not None
    assert three.cpu_seconds == pytest.approx(3 * one.cpu_seconds)
    assert three.peak_bytes == one.peak_bytes


def test_of_a_kernel_without_costs_and_objects_without_a_size_nothing_is_known() -> None:
    assert estimate("checksum", [ChecksumTask(("late/a",))]) is None
    assert estimate("inspect", [InspectTask(collection(), part(1), False), ChecksumTask(("late/a",))]) is None
    assert estimate("unheard of", [InspectTask(collection(), part(1), False)]) is None


def test_every_kernel_has_its_costs_but_the_one_of_unknown_size() -> None:
    by_format = {f"ingest {of}" for of in Format}
    composed = {"ingest", "reread", "not_contributed", "retracted_share", "checksum"}
    assert COSTS.keys() - by_format - {"compared", "lookup", "expectations", "build"} == KERNELS.keys() - composed
    assert by_format < COSTS.keys()


def test_small_is_bounded_by_seconds_and_by_memory() -> None:
    assert is_small(Estimate(SMALL_CPU_SECONDS, SMALL_BYTES))
    assert not is_small(Estimate(SMALL_CPU_SECONDS + 0.1, 0))
    assert not is_small(Estimate(0, SMALL_BYTES + 1))
    assert is_small(Estimate(0, 2)) > is_small(Estimate(0, 2), 1)


@pytest.mark.parametrize("format", Format)
def test_what_is_given_up_is_more_than_what_is_small(format: Format) -> None:
    task = ingest(100, format=format)
    memory, time = decoded_in_memory("ingest", task), decoded_in_time("ingest", task)
    assert 1 * MIB < memory < SMALL_BYTES < time
    assert decoded_in_memory("ingest", task, 1) < memory
    just_small = estimate("ingest", [task], Density(0.1, memory / 1.6 / 100))
    assert just_small is not None
    assert is_small(just_small)

"""How much a task reads is known before anything is opened, from what its parts and files are recorded to have."""

from __future__ import annotations

from dataclasses import replace

from support.world import collection
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.frontier import CompactionFunction
from tidemark.model.interval import Interval
from tidemark.model.ledger import SourceFile
from tidemark.plan.task_size import Size, size_of
from tidemark.plan.tasks import ALL_KEYS, ChecksumTask, IngestTask, InspectTask, MergeTask, ResolveTask


def part(rows: int, *, groups: int = 1) -> Part:
    each = tuple(((at,), rows // groups) for at in range(groups))
    return Part(ObjectRef("data/p", rows * 10, ""), rows, 0, each, (groups,), 0, 1, 0, 1)


def test_tasks_tell_rows_of_parts_and_bytes_of_files() -> None:
    files = (SourceFile("a", 100, "1"), SourceFile("b", 20, "2"))
    ingest = IngestTask(collection(), Interval(0, 10), files, 0, 0, 0, "b", "data/b")
    assert size_of(ingest) == Size(0, 120)
    merge = MergeTask(collection(), (part(5), part(7)), ALL_KEYS, 0, 10, CompactionFunction(0))
    assert size_of(merge) == Size(12, 120)
    assert size_of(InspectTask(collection(), part(5), False)) == Size(5, 50)


def test_facts_open_at_most_one_row_group_each_of_every_part_of_the_trace() -> None:
    task = ResolveTask(collection(), (part(2),), (part(1000, groups=10), part(60, groups=3)), ALL_KEYS, 0, 10, 0)
    assert size_of(task) == Size(2 + 200 + 40, 20 + 2000 + 400)
    many = replace(task, facts=(part(500),))
    assert size_of(many) == Size(500 + 1060, 5000 + 10600)


def test_of_objects_without_a_size_nothing_is_known() -> None:
    assert size_of(ChecksumTask(("late/a",))) is None

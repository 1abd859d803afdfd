"""Files are grouped into tasks whatever their sizes, also of nothing at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.ledger import SourceFile
from tidemark.plan.ingest import FILE_BYTES, group_files

files = st.lists(st.one_of(st.integers(0, 20), st.integers(0, 20).map(lambda size: size * FILE_BYTES))).map(
    lambda sizes: [SourceFile(f"{at:03}", size, "token") for at, size in enumerate(sizes)]
)


@given(files, st.integers(1, 5))
def test_every_file_is_in_one_group_in_order_and_groups_are_of_even_size(files, tasks):
    groups = group_files(files, tasks)
    assert [file for group in groups for file in group] == files
    assert all(groups)
    total = sum(file.bytes + FILE_BYTES for file in files)
    for group in groups:
        assert len(group) == 1 or sum(file.bytes + FILE_BYTES for file in group) <= -(-total // tasks)


def test_a_million_files_of_nothing_are_many_tasks():
    """Each tells of every file: one answer of a million entries is more than a JVM takes."""
    groups = group_files([SourceFile("a", 0, "token")] * 1_000_000, 2)
    assert max(map(len, groups)) <= 8192

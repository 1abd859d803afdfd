"""Files are grouped into tasks whatever their sizes, also of nothing at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.ledger import SourceFile
from tidemark.plan.ingest import group_files

files = st.lists(st.integers(0, 20)).map(
    lambda sizes: [SourceFile(f"{at:03}", size, "token") for at, size in enumerate(sizes)]
)


@given(files, st.integers(1, 5))
def test_every_file_is_in_one_group_in_order_and_groups_are_of_even_size(files, tasks):
    groups = group_files(files, tasks)
    assert [file for group in groups for file in group] == files
    assert all(groups)
    total = sum(file.bytes for file in files)
    for group in groups:
        assert len(group) == 1 or sum(file.bytes for file in group) <= max(1, -(-total // tasks))


def test_a_file_of_no_bytes_comes_first():
    empty = SourceFile("a", 0, "token")
    assert group_files([empty], 2) == [(empty,)]

"""The rules of rows in plain Python (tests/support/rules.py) and what the inspect kernel finds at scale: the same,
by the same names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import SMALL, batch, write
from tests.support.budget import laws
from tests.support.rules import of_trace_rows
from tidemark.arrow.kernels.inspect import inspect_part
from tidemark.arrow.rows.schema import updates_schema
from tidemark.jobs.queries.verify import findings_of
from tidemark.model.batch import Description, TraceBatch
from tidemark.model.invariants import Invariant
from tidemark.model.update import Update
from tidemark.plan.tasks import InspectTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
TIMES = st.integers(0, 7)
ROWS = st.lists(
    st.builds(
        Update,
        st.tuples(st.integers(0, 2)),
        st.tuples(st.sampled_from([None, "a", "b"])),
        TIMES,
        TIMES,
        st.integers(-1, 1),
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: sorted(rows, key=lambda update: update.key))
"""In order of key only, so that a part can be written of them."""


def found_by_the_kernel(description: Description, rows: list[Update]) -> set[str]:
    store = MemoryStore()
    table = batch(updates_schema(SMALL), [(*u.key, *u.value, u.time, u.event_time, u.diff) for u in rows])
    (part,) = write(store, SMALL, table, group_rows=2)
    answer = inspect_part(store, InspectTask(SMALL, part, False))
    return {finding.rule for finding in findings_of(TraceBatch("b", description, 0, 0, 0, 0), part, answer)}


@laws
@given(ROWS, st.integers(0, 4), st.integers(1, 4))
def test_rows_that_were_not_forwarded(rows: list[Update], lower: int, width: int) -> None:
    description = Description(lower, lower + width)
    expected = {str(violation.rule) for violation in of_trace_rows(description, [rows])}
    assert found_by_the_kernel(description, rows) == expected


@laws
@given(ROWS, st.integers(0, 4), st.integers(1, 4), st.integers(0, 9))
def test_of_rows_that_were_the_kernel_asks_more(rows: list[Update], lower: int, width: int, since: int) -> None:
    """That they were forwarded indeed: a reader cannot tell, a gate can."""
    description = Description(lower, lower + width, since)
    expected = {str(violation.rule) for violation in of_trace_rows(description, [rows])}
    found = found_by_the_kernel(description, rows)
    assert expected <= found
    assert found - expected <= {Invariant.TIMES_FROM_LOWER}
    if found != expected:
        assert min(update.time for update in rows) < since

"""The kernel that gives rows their windows against windows found by trying every start there is, in plain Python."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.kinds import ALIGNED, Sample, name
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.aligned import KERNELS
from tidemark.arrow.kernels.windows.placed import first_after, pieces, placed
from tidemark.definition.recipe import WindowAssignment
from tidemark.model.collection import ColumnType
from tidemark.model.window.calendar import Unit, unit_of
from tidemark.model.window.kinds import KINDS, AlignedKind, Calendar, Cumulate, Hopping, Tumbling

pytestmark = pytest.mark.pure


def test_every_aligned_kind_has_a_kernel() -> None:
    assert set(KERNELS) == {kind for kind in KINDS if issubclass(kind, AlignedKind)}


@pytest.mark.parametrize("sample", ALIGNED, ids=name)
def test_the_kernel_is_the_law(sample: Sample) -> None:
    """At bounds of windows and beside them, near and far, before 1970 and after, in any order and more than once."""
    kind, chance = sample.kind, random.Random(str(sample.kind))
    assert isinstance(kind, AlignedKind)
    near = [chance.randrange(-20 * sample.unit, 160 * sample.unit) for _ in range(100)]
    instants = [*near, *near[:9], *(chance.randrange(-(10**17), 10**17) for _ in range(100))]
    bounds = [bound for at in instants for bound in kind.earliest_after(at)]
    instants += [*bounds, *(at - 1 for at in bounds)]
    rule = WindowAssignment(kind, "at", (), ColumnType.INT)
    found = placed(pa.record_batch([pa.array(instants, pa.int64())], ["at"]), rule)
    by_law = [(at, *window) for at in instants for window in kind.windows_at(at)]
    assert [tuple(row.values()) for row in found.to_pylist()] == by_law
    following = first_after(rule, np.array(instants, np.int64))
    assert list(zip(*(some.tolist() for some in following), strict=True)) == [
        kind.earliest_after(at) for at in instants
    ]


@pytest.mark.parametrize("sample", ALIGNED, ids=name)
def test_no_bound_wraps_around(sample: Sample) -> None:
    """Near the ends of 64 bits a window is that of the law, or refused."""
    rule = WindowAssignment(sample.kind, "at", (), ColumnType.INT)
    assert isinstance(sample.kind, AlignedKind)
    for at in (*range(-(2**63), -(2**63) + 20), *range(2**63 - 20, 2**63)):
        law = [(at, *window) for window in sample.kind.windows_at(at)]
        try:
            found = placed(pa.record_batch([pa.array([at], pa.int64())], ["at"]), rule)
        except Overflowed:
            continue
        assert [tuple(row.values()) for row in found.to_pylist()] == law


ZONES = [
    *("UTC", "America/Sao_Paulo", "Europe/London", "Atlantic/Azores", "Pacific/Apia", "Asia/Kathmandu", "Africa/Cairo"),
]


def test_rows_of_many_windows_and_days_go_in_pieces() -> None:
    """Of which none is too much at once."""
    for kind in (Hopping(10_000, 1), Cumulate(10_000, 1), Calendar(Unit.DAY)):
        rule = WindowAssignment(kind, "at", (), ColumnType.INT)
        rows = pa.record_batch([pa.array(range(0, 20_000 * 86_400_000_000, 86_400_000_000))], ["at"])
        with pytest.raises(Overflowed, match=r"too many windows|16,384 days"):
            placed(rows, rule)
        nine = islice(pieces([rows.slice(0, 900), rows.slice(900)], rule), 9)
        found = [placed(some, rule).num_rows for some in nine]
        assert min(found) >= 900


@pytest.mark.parametrize("zone", ZONES)
def test_days_in_which_clocks_were_put_on_are_those_of_the_law(zone: str) -> None:
    """Each quarter of an hour of some years in which they were, in all of these zones."""
    quarter, first = 900_000_000, {"Pacific/Apia": 15_300, "America/Sao_Paulo": 17_400}.get(zone, 16_000)
    at = [first * 86_400_000_000 + step * quarter for step in range(0, 370 * 96, 3)]
    kind = Calendar(Unit.DAY, zone)
    found = placed(pa.record_batch([pa.array(at)], ["at"]), WindowAssignment(kind, "at", (), ColumnType.INT))
    assert [tuple(row.values())[1:] for row in found.to_pylist()] == [unit_of(Unit.DAY, zone, one) for one in at]


@pytest.mark.parametrize(("of", "unit"), [(pa.timestamp("us", "UTC"), 1), (pa.date32(), 86_400_000_000)])
def test_times_and_dates_have_windows_of_times(of: pa.DataType, unit: int) -> None:
    numbers = [-3, 0, None, 5]
    at = pa.array(numbers, pa.int32() if of == pa.date32() else pa.int64()).cast(of)
    found = placed(pa.record_batch([at], ["at"]), WindowAssignment(Tumbling(2 * unit), "at", (), ColumnType.TIMESTAMP))
    assert found.schema.field("_start").type == found.schema.field("_end").type == pa.timestamp("us", "UTC")
    starts, ends = (found.column(name).cast(pa.int64()).to_pylist() for name in ("_start", "_end"))
    assert starts == [-4 * unit, 0, 4 * unit]
    assert ends == [-2 * unit, 2 * unit, 6 * unit]


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        *((Calendar(Unit.DAY), 2**63 - 1), (Calendar(Unit.YEAR), -(2**63)), (Tumbling(10), 2**63 - 1)),
        *((Tumbling(10), -(2**63)), (Tumbling(2**63 - 1), 2**63 - 1), (Hopping(10, 5), 2**63 - 2)),
        *((Cumulate(10, 5), -(2**63) + 1), (Hopping(2**40, 1), 1), (Cumulate(2**40, 1), 1)),
    ],
)
def test_what_is_too_far_and_too_much_is_refused(kind: AlignedKind, at: int) -> None:
    rows: Any = pa.record_batch([pa.array([at])], ["at"])
    with pytest.raises(Overflowed):
        placed(rows, WindowAssignment(kind, "at", (), ColumnType.INT))

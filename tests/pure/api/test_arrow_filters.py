"""What a filter of Arrow implies, as a condition: few rows are read by it. That the rows are right is not up to it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tidemark.api.arrow_filters import implied, referenced
from tidemark.api.conditions import ALL
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Not, Or

COLUMNS = {
    "i": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.binary(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "m": pa.decimal128(12, 2),
    "o": pa.bool_(),
}
NUM, FLOAT, TEXT, AT = (pc.field(name) for name in "ifst")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
KNOWN: list[tuple[pc.Expression, Condition]] = [
    (NUM == 5, Compare("i", "=", 5)),
    (NUM != 5, Compare("i", "!=", 5)),
    (pc.scalar(5) < NUM, Compare("i", ">", 5)),
    (pc.scalar(5) >= NUM, Compare("i", "<=", 5)),
    (TEXT == 'it\'s "b"\n', Compare("s", "=", 'it\'s "b"\n')),
    (pc.field("b") == b"\x00\xff", Compare("b", "=", b"\x00\xff")),
    (pc.field("d") > date(1970, 1, 11), Compare("d", ">", 10)),
    (AT <= NOON, Compare("t", "<=", 1_704_110_400_000_000)),
    (pc.field("m") >= Decimal("0.50"), Compare("m", ">=", Decimal("0.50"))),
    (pc.field("o") == True, Compare("o", "=", True)),  # noqa: E712 (an expression of Arrow)
    (NUM.is_valid(), Not(IsNull("i"))),
    (~NUM.is_null(), Not(IsNull("i"))),
    (NUM.is_null(), IsNull("i")),
    (NUM.isin([1, 2]), In("i", (1, 2))),
    (TEXT.isin(["a", None]), Or((In("s", ("a",)), IsNull("s")))),
    ((NUM > 1) & (TEXT < "b"), And((Compare("i", ">", 1), Compare("s", "<", "b")))),
    ((NUM > 1) | (NUM < 0), Or((Compare("i", ">", 1), Compare("i", "<", 0)))),
    (pc.if_else(NUM.is_valid(), NUM.isin([7]), pa.scalar(None, pa.bool_())), In("i", (7,))),
    (pa.scalar(None, pa.int64()) == NUM, Or(())),
]
WEAKER: list[tuple[pc.Expression, Condition]] = [
    ((NUM > 1) & (FLOAT < 2.0), And((Compare("i", ">", 1),))),
    ((NUM > 1) | (FLOAT < 2.0), ALL),
    (FLOAT == 1.0, ALL),
    (~(NUM > 1), ALL),
    (NUM + 1 == 5, ALL),
    (NUM.cast(pa.string()) == "5", ALL),
    (NUM > 1.5, ALL),
    (pc.field("unknown") == 1, ALL),
    (pc.field(0) == 1, ALL),
    (pc.field("a", "b") == 1, ALL),
    (pc.starts_with(TEXT, "a"), ALL),
    (pc.field("t") == pa.scalar(NOON.replace(tzinfo=None)), ALL),
    (pc.scalar(True), ALL),
    (FLOAT.is_null(nan_is_null=True), ALL),
]


@pytest.mark.parametrize(("filter", "condition"), [*KNOWN, *WEAKER], ids=str)
def test_what_is_implied(filter: pc.Expression, condition: Condition) -> None:
    assert implied(filter, COLUMNS) == condition


def test_no_filter_says_nothing_and_looks_at_nothing() -> None:
    assert implied(None, COLUMNS) is ALL
    assert referenced(None) == frozenset()


@pytest.mark.parametrize(
    ("filter", "columns"),
    [
        (NUM == 1, {"i"}),
        ((NUM + 1 == 5) & (FLOAT < AT), {"i", "f", "t"}),
        (pc.scalar(True), set()),
        (pc.field("a", "b") == 1, None),
    ],
    ids=str,
)
def test_the_columns_that_are_looked_at(filter: pc.Expression, columns: set[str] | None) -> None:
    assert referenced(filter) == columns


class Strange:
    """A filter of an Arrow that pickles otherwise."""

    def __init__(self, reduced: Any) -> None:
        self._reduced = reduced

    def __reduce__(self) -> Any:
        return self._reduced


@pytest.mark.parametrize("reduced", ["text", (int, (b"no buffer",)), (int, (pa.py_buffer(b"no file"),))], ids=str)
def test_what_is_pickled_in_another_way_says_nothing(reduced: Any) -> None:
    strange: Any = Strange(reduced)
    assert implied(strange, COLUMNS) is ALL
    assert referenced(strange) is None

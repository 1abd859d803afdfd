"""What makes a large value of a few bytes is refused where that can be seen, and raises for its row else."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import FLIGHTS, recipe
from tidemark.definition.windows.expressions import row_expression
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure

TOO_LARGE = [
    *("repeat('x', 2000000000)", "repeat(carrier, 1000001)", "lpad(carrier, 2000000000, ' ')"),
    *("rpad(carrier, 300000000, 'x')", "space(1000001)", "array_repeat(1, 2000000000)", "sequence(1, 2000000)"),
    *("sequence(2000000, -1)", "sequence(1, 2000000000, 10)"),
]
GUARDED = [
    *("repeat(carrier, Delay)", "repeat(repeat(repeat(carrier, 1000000), 1000000), 1000000)"),
    *("lpad(carrier, Delay, ' ')", "rpad(carrier, Delay)", "space(Delay)", "array_repeat(id, Delay)"),
    *("sequence(1, Delay)", "sequence(id, Delay, 2)"),
]
LEFT = ["lpad(carrier, 5, '0')", "repeat('-', 80)", "space(3)", "sequence(1, 1000)", "sequence(day, date'2030-01-01')"]


@pytest.mark.parametrize("call", TOO_LARGE)
def test_a_count_that_is_too_large_for_any_row_is_refused(call: str) -> None:
    with pytest.raises(InvalidUsage, match=r"the select calls .* at most; (write a smaller count|make it shorter)"):
        recipe(f"SELECT id, {call} AS x FROM flights")


@pytest.mark.parametrize("call", GUARDED)
def test_one_that_a_row_says_raises_for_the_row(call: str) -> None:
    assert "RAISE_ERROR('" in recipe(f"SELECT id, size(array({call})) AS x FROM flights").whole.upper()


@pytest.mark.parametrize("call", LEFT)
def test_what_is_small_is_left_as_it_is(call: str) -> None:
    assert "RAISE_ERROR" not in recipe(f"SELECT id, size(array({call})) AS x FROM flights").whole.upper()


def test_a_sequence_of_unknown_bounds_is_refused_with_what_to_write() -> None:
    with pytest.raises(InvalidUsage, match=r"the type is not known; write CAST\(… AS bigint\), date or timestamp"):
        recipe("SELECT id, sequence(1, element_at(array(id), 1)) AS x FROM flights")


def test_expressions_of_windows_are_guarded_too() -> None:
    shapes = {"flights": FLIGHTS}
    assert "RAISE_ERROR" in row_expression("length(repeat(carrier, Delay))", "a", FLIGHTS, shapes).sql.upper()
    with pytest.raises(InvalidUsage, match=r"^a: calls REPEAT\(flights.carrier, 2000000000\): repeat makes"):
        row_expression("length(repeat(carrier, 2000000000))", "a", FLIGHTS, shapes)


def test_guards_within_guards_are_bounded() -> None:
    nested = "carrier"
    for _ in range(30):
        nested = f"repeat({nested}, Delay)"
    with pytest.raises(InvalidUsage, match="nests repeat in functions that make large values, too often"):
        recipe(f"SELECT id, {nested} AS x FROM flights")

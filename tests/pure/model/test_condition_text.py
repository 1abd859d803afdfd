"""The grammar of conditions, and their evaluation against SQLite's."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from tidemark.arrow.rows.condition import holds
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.condition.text import parse
from tidemark.model.condition.tree import And, Compare, In, IsNull, Not, Or, bound, check_types, columns

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("status = 'DELETED'", Compare("status", "=", "DELETED")),
        ("a == 1", Compare("a", "=", 1)),
        ("a <> -1.5", Compare("a", "!=", -1.5)),
        ("a >= 2e3", Compare("a", ">=", 2000.0)),
        ("a = 'it''s'", Compare("a", "=", "it's")),
        ("a = TRUE", Compare("a", "=", True)),
        ('"order" = false', Compare("order", "=", False)),
        ("a is null", IsNull("a")),
        ("a IS NOT NULL", Not(IsNull("a"))),
        ("a IN (1, 2)", In("a", (1, 2))),
        ("a not in ('x')", Not(In("a", ("x",)))),
        ("a=1 OR b=2 AND c=3", Or((Compare("a", "=", 1), And((Compare("b", "=", 2), Compare("c", "=", 3)))))),
        ("(a=1 OR b=2) AND c=3", And((Or((Compare("a", "=", 1), Compare("b", "=", 2))), Compare("c", "=", 3)))),
        ("NOT a=1 AND b=2", And((Not(Compare("a", "=", 1)), Compare("b", "=", 2)))),
        ("a BETWEEN 1 AND 2", And((Compare("a", ">=", 1), Compare("a", "<=", 2)))),
        ("a not between 1 and 2", Not(And((Compare("a", ">=", 1), Compare("a", "<=", 2))))),
        (
            "between BETWEEN 1 AND 2 AND b=3",
            And((And((Compare("between", ">=", 1), Compare("between", "<=", 2))), Compare("b", "=", 3))),
        ),
        ("like = 1", Compare("like", "=", 1)),
        ("order = 1 OR case IS NULL", Or((Compare("order", "=", 1), IsNull("case")))),
        ("NOT NOT a=1", Not(Not(Compare("a", "=", 1)))),
    ],
)
def test_what_a_text_means(text: str, tree: object) -> None:
    assert parse(text) == tree


def test_names_have_dots_where_a_condition_is_about_what_a_source_reads() -> None:
    text = "source.db = 'a.b' AND __op IN ('c') AND source.x_1.in >= .5"
    assert columns(parse(text, dotted=True)) == ("source.db", "__op", "source.x_1.in")
    for wrong, at in ((text, 7), ("a. = 1", 2), (".a = 1", 1), ("a.1 = 1", 2)):
        with pytest.raises(InvalidUsage, match=rf"at position {at} "):
            parse(wrong, dotted=wrong != text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a column name, found the end at position 1"),
        ("a", "expected a comparison, IS, IN or BETWEEN, found the end at position 2"),
        ("a =", "found the end at position 4"),
        ("a = b", "expected a text in single quotes, a number, TRUE or FALSE, found 'b' at position 5"),
        ("a = NULL", "a column is compared with null by IS NULL"),
        ("a = 'x", "a text that is never closed at position 5"),
        ("a = 1 b = 2", "expected AND, OR or the end, found 'b' at position 7"),
        ("(a = 1", "expected ), found the end"),
        ("a IN ()", "found ')' at position 7"),
        ("a IN (1", "expected ), found the end"),
        ("a NOT = 1", "expected IN or BETWEEN, found '=' at position 7"),
        ("a BETWEEN 1", "expected AND, found the end at position 12"),
        ("a BETWEEN 1 OR 2", "expected AND, found 'OR' at position 13"),
        (
            "a LIKE 'x%'",
            "expected a comparison, IS, IN or BETWEEN (conditions have no LIKE), found 'LIKE' at position 3",
        ),
        ("a NOT LIKE 'x%'", "expected IN or BETWEEN (conditions have no LIKE), found 'LIKE' at position 7"),
        ("a IS 1", "expected NULL, found '1' at position 6"),
        ("1 = a", "expected a column name, found '1' at position 1"),
        ("a ; drop", "';' is not understood at position 3"),
        ("AND = 1", "expected a column name, found 'AND'"),
        ("a = 1e999", "expected a number that fits a double"),
        ("NOT " * 200 + "a = 1", "nested deeper than 100"),
        ("(" * 200 + "a = 1" + ")" * 200, "nested deeper than 100"),
    ],
)
def test_what_does_not_parse_is_refused_with_its_position(text: str, says: str) -> None:
    with pytest.raises(InvalidUsage) as caught:
        parse(text)
    assert says in str(caught.value)


def test_the_page_about_conditions_shows_what_can_be_read_and_what_is_said_of_others() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "conditions.md").read_text()
    [some] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    for line in some.splitlines():
        assert columns(parse(line)) != ()
    [said] = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    with pytest.raises(InvalidUsage) as caught:
        parse("a = b")
    assert str(caught.value) == said


def test_the_columns_of_a_condition() -> None:
    assert columns(parse("b = 1 OR a IS NULL OR NOT b IN (2)")) == ("b", "a")


@pytest.mark.parametrize(
    ("text", "column_type", "fits"),
    [
        ("a = 1", ColumnType.INT, True),
        ("a = 1.5", ColumnType.INT, True),
        ("a = '1'", ColumnType.INT, False),
        ("a = TRUE", ColumnType.INT, False),
        ("a = 1", ColumnType.STRING, False),
        ("a = FALSE", ColumnType.BOOL, True),
        ("a < FALSE", ColumnType.BOOL, False),
        ("a < '2013-01-01'", ColumnType.DATE, True),
        ("a < '2013-01-01T00:00:00Z'", ColumnType.TIMESTAMP, True),
        ("a < 'soon'", ColumnType.TIMESTAMP, False),
        ("a IN (1, 'x')", ColumnType.INT, False),
        ("a IS NULL", ColumnType.BOOL, True),
    ],
)
def test_literals_must_fit_their_column(text: str, column_type: ColumnType, fits: bool) -> None:
    if fits:
        check_types(parse(text), lambda _: column_type)
    else:
        with pytest.raises(InvalidUsage, match="column a"):
            check_types(parse(text), lambda _: column_type)


def test_dates_times_and_bools_are_compared() -> None:
    batch = pa.record_batch(
        {
            "t": pa.array([0, 86_400_000_000, None], pa.timestamp("us", "UTC")),
            "d": pa.array([0, 1, None], pa.date32()),
            "b": pa.array([True, False, None]),
            "n": pa.array([2**63 - 1, 0, None]),
        }
    )
    types = {"t": ColumnType.TIMESTAMP, "d": ColumnType.DATE, "b": ColumnType.BOOL, "n": ColumnType.INT}

    def mask(text: str) -> list[bool]:
        found: list[bool] = holds(bound(parse(text), types.__getitem__), batch).to_pylist()
        return found

    assert mask("t < '1970-01-02'") == [True, False, False]
    assert mask("t = '1970-01-02T01:00:00+01:00'") == [False, True, False]
    assert mask("d >= '1970-01-02'") == [False, True, False]
    assert mask("b = FALSE OR NOT b <> TRUE") == [True, True, False]
    assert mask("n = 9223372036854775807") == [True, False, False]
    assert mask("n < 99999999999999999999") == [True, True, False]


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_long_chain_is_no_deep_one(word: str) -> None:
    text = f" {word} ".join(f"n <> {number}" for number in range(2000))
    assert columns(parse(text)) == ("n",)
    batch = pa.record_batch({"n": pa.array([5, -1])})
    assert holds(parse(text), batch).to_pylist() == [word == "OR", True]
    assert "Compare" in repr(parse(text))


def test_an_error_of_a_long_condition_shows_the_place() -> None:
    text = " OR ".join(f"n = {number}" for number in range(1000)).replace("n = 500 ", "n == = 500 ")
    with pytest.raises(InvalidUsage) as caught:
        parse(text)
    assert "found '=' at position" in str(caught.value)
    assert "n == = 500 OR n = 501" in str(caught.value)
    assert len(str(caught.value)) < 300

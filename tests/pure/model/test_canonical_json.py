"""JSON values as one text each: RFC 8785, and numbers by their exact value."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.canonical_json import NotJson, canonical

pytestmark = pytest.mark.pure

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))


def exact(text: str) -> Any:
    """The value with all digits of its numbers."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_a_value_has_one_text_and_the_text_has_the_value(value: Any, indent: int | None, escaped: bool) -> None:
    written = json.dumps(value, indent=indent, ensure_ascii=escaped)
    text = canonical(written)
    assert exact(text) == exact(written)
    assert canonical(text) == text


@given(st.integers(1, 10**25), st.integers(-30, 30), st.integers(0, 5))
def test_equal_numbers_have_equal_texts_and_others_not(digits: int, exponent: int, zeros: int) -> None:
    one = canonical(f"{digits}e{exponent}")
    assert canonical(f"{digits}{'0' * zeros}E{exponent - zeros:+d}") == one
    assert canonical(f"{digits + 1}e{exponent}") != one
    assert Decimal(one) == Decimal(digits).scaleb(exponent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The examples of RFC 8785, sections 3.2.2 and 3.2.3; its numbers are those that a double has in its digits.
        ("[56.0, 4.50, 2e-3, 0.000000000000000000000000001]", "[56,4.5,0.002,1e-27]"),
        ('{"\\u20ac": "Euro Sign", "\\r": 1, "\\ufb33": 2, "1": 3, "\\ud83d\\ude00": 4, "\\u0080": 5, "\\u00f6": 6}',
         '{"\\r":1,"1":3,"\x80":5,"ö":6,"€":"Euro Sign","😀":4,"\ufb33":2}'),
        ('"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/"', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
        ("[null, true, false]", "[null,true,false]"),
        # Where doubles would lose digits, none are lost.
        ("9007199254740993", "9007199254740993"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1e400", "1e+400"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("1.0", "1"),
        ("100000000000000000000", "100000000000000000000"),
        ("1000000000000000000000", "1e+21"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ('{"b": {}, "a": []}', '{"a":[],"b":{}}'),
        (' "\\u00e9" ', '"é"'),
    ],
)  # fmt: skip
def test_examples(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_names_are_not_normalised() -> None:
    assert canonical('{"\\u00e9": 1, "e\\u0301": 2}') == '{"e\u0301":2,"é":1}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":1,"b":{"a":1,"a":1}}', "the name 'a' twice in one object"),
        ('{"a":1,"\\u0061":2}', "the name 'a' twice in one object"),
        ('"\\ud800"', "half a surrogate pair, which is not Unicode text"),
        ('{"\\udc00":1}', "half a surrogate pair, which is not Unicode text"),
        ("[NaN]", "NaN, which is no number of JSON"),
        ("-Infinity", "-Infinity, which is no number of JSON"),
        ("1e9999999999", "a number with an exponent of more than 9 digits"),
        ("", "no JSON (Expecting value: line 1 column 1 (char 0))"),
        ("[1,]", "no JSON (Expecting value: line 1 column 4 (char 3))"),
        ("01", "no JSON (Extra data: line 1 column 2 (char 1))"),
        ("{'a': 1}", "no JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ("[" * 101 + "]" * 101, "more than 100 levels of arrays and objects"),
        ("[" * 200_000, "more than 100 levels of arrays and objects"),
    ],
    ids=lambda case: str(case)[:30],
)
def test_what_is_no_value_is_refused(text: str, says: str) -> None:
    with pytest.raises(NotJson) as error:
        canonical(text)
    assert str(error.value) == says


def test_a_hundred_levels_are_taken_and_a_number_of_any_length() -> None:
    assert canonical("[" * 100 + "]" * 100) == "[" * 100 + "]" * 100
    assert canonical("-" + "9" * 10_000) == "-" + "9." + "9" * 9_999 + "e+9999"

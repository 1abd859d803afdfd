"""JSON values as one text each: two values are equal if, and only if, their canonical texts are.

The text is that of RFC 8785 (JCS) but for numbers, which stay exact: no blank; the members of an object by name, names
in order of their UTF-16 code units; texts escaped only where JSON demands it. A number is its exact decimal value, not
the nearest double: `1.0`, `1` and `10e-1` are `1`, `-0` is `0`, 2^53 + 1 keeps its last digit. It is written as RFC
8785 writes a double of the same digits, so whatever fits a double in 15 digits has the same text in both.

    value        canonical            value         canonical
    {"b":1,      {"a":[],"b":1}       0.10          0.1
     "a": []}                         1e21          1e+21
    "\\u00e9\\/"   "é/"                 0.0000001     1e-7

Refused, as they are no value or not one: a name twice in an object, half a surrogate pair, NaN and Infinity, more than
100 levels of arrays and objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

MAX_LEVELS = 100
_NUMBER = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_MAX_EXPONENT_DIGITS = 9
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_PLAIN_DIGITS = 21
"""Up to so many digits before the point a number is written without an exponent, as ECMAScript does."""
_LEADING_ZEROS = 6
"""And with up to so many zeros behind the point before its first digit."""


class NotJson(ValueError):
    """What is no JSON value here; its text says why, in words that follow `holds …: `."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs, in order, so that a name written twice is noticed."""


class Literal(float):
    """A number as JSON wrote it: its `text` is exact."""

    def __new__(cls, text: str) -> Literal:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def canonical(text: str) -> str:
    """The canonical text of the JSON value written in `text`. Raises NotJson."""
    return written(parsed(text))


def parsed(text: str) -> Any:
    """A JSON text as Python has it: objects as Pairs, numbers as int or Literal. Raises NotJson."""
    try:
        return json.loads(
            text, object_pairs_hook=Pairs, parse_float=Literal, parse_int=_integer, parse_constant=_no_number
        )
    except RecursionError:
        raise NotJson(f"more than {MAX_LEVELS} levels of arrays and objects") from None
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(f"no JSON ({error})") from None


def _integer(text: str) -> int | Literal:
    return int(text) if len(text) <= _PLAIN_DIGITS else Literal(text)


def _no_number(text: str) -> NoReturn:
    raise NotJson(f"{text}, which is no number of JSON")


def written(value: Any, level: int = 0) -> str:
    """The canonical text of a value as `parsed` gives it. Raises NotJson."""
    if isinstance(value, Pairs | list) and level == MAX_LEVELS:
        raise NotJson(f"more than {MAX_LEVELS} levels of arrays and objects")
    if isinstance(value, Pairs):
        return members((name, written(member, level + 1)) for name, member in value)
    if isinstance(value, list):
        return f"[{','.join(written(one, level + 1) for one in value)}]"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Literal):
        return number(value.text)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_PLAIN_DIGITS else number(str(value))
    raise NotJson(f"{value!r}, which is no number of JSON")


def members(pairs: Iterable[tuple[str, str]]) -> str:
    """The object of names and of values written already."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise NotJson(f"the name {name[:40]!r} twice in one object")
        values[name] = value
    return "{" + ",".join([f"{text(name)}:{values[name]}" for name in in_order(values)]) + "}"


def in_order(names: Iterable[str]) -> list[str]:
    """The names of an object's members in order of their UTF-16 code units."""
    some = list(names)
    return sorted(some, key=None if "".join(some).isascii() else _utf16)


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def text(value: str) -> str:
    """A text in quotes."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotJson("half a surrogate pair, which is not Unicode text") from None
    return _quoted(value)


def number(literal: str) -> str:
    """The canonical text of a number as JSON writes it."""
    match = _NUMBER.fullmatch(literal)
    if match is None:
        raise NotJson(f"{literal[:40]}, which is no number of JSON")
    sign, whole, fraction, exponent = match[1], match[2], match[3] or "", match[4] or "0"
    if len(exponent.lstrip("+-0")) > _MAX_EXPONENT_DIGITS:
        raise NotJson(f"a number with an exponent of more than {_MAX_EXPONENT_DIGITS} digits")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "0"
    before = len(digits) + int(exponent) - len(fraction)
    digits = digits.rstrip("0")
    return sign + _placed(digits, before)


def _placed(digits: str, before: int) -> str:
    """Digits without zeros at their ends, `before` of them before the point, in the form of ECMAScript."""
    if len(digits) <= before <= _PLAIN_DIGITS:
        return digits + "0" * (before - len(digits))
    if 0 < before <= _PLAIN_DIGITS:
        return f"{digits[:before]}.{digits[before:]}"
    if -_LEADING_ZEROS < before <= 0:
        return f"0.{'0' * -before}{digits}"
    point = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{point}e{before - 1:+d}"

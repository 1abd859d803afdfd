"""How texts write dates and times: a format by the codes of strftime, as a regular expression with a group a code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidemark.errors import InvalidUsage

MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MAX_FORMAT = 100


def _one_of(names: list[str], letters: int | None = None) -> str:
    return "|".join(name[:letters] for name in names)


_DATE = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "[0-9]{1,2}",
    "d": "[0-9]{1,2}",
    "j": "[0-9]{1,3}",
    "b": _one_of(MONTHS, 3),
    "B": _one_of(MONTHS),
    "a": _one_of(WEEKDAYS, 3),
    "A": _one_of(WEEKDAYS),
}
_TIME = {
    "H": "[0-9]{1,2}",
    "I": "[0-9]{1,2}",
    "p": "am|pm",
    "M": "[0-9]{1,2}",
    "S": "[0-9]{1,2}",
    "f": "[0-9]{1,9}",
    "z": "Z|[+-][0-9]{2}:?[0-9]{2}",
}
CODES = {**_DATE, **_TIME}
"""What each code stands for. Names are English, in any case."""
_DIGITS = dict.fromkeys("mdHIMS", 2) | {"j": 3}
"""Codes whose numbers may have fewer digits, unless others are next to them."""
_NUMBERS = {*_DIGITS, *"Yyf"}
_NEEDS = (("M", "HI"), ("S", "M"), ("f", "S"), ("I", "p"), ("p", "I"), ("z", "HI"))
"""Codes that say nothing without one of others."""


def codes_of(text: str) -> list[str]:
    """The codes of a format, `%%` excepted."""
    return [code for code in re.findall(r"%(.?)", text, re.DOTALL) if code != "%"]


def has_clock(text: str) -> bool:
    """Whether a format says more than a day."""
    return any(code in _TIME for code in codes_of(text))


def check(text: str, *, has_time: bool) -> None:
    """Check that a format says which day it is, and of a column of times at most which microsecond.

    Raises:
        InvalidUsage: It does not, or has a code that is not known.
    """
    codes = codes_of(text)
    said = f"format {text[:MAX_FORMAT]!r}"
    if len(text) > MAX_FORMAT:
        raise InvalidUsage(f"{said} is longer than {MAX_FORMAT} characters")
    if odd := [code for code in codes if code not in CODES]:
        raise InvalidUsage(f"{said} has %{odd[0]}, which is no code here; the codes are %{', %'.join(CODES)} and %%")
    if twice := [code for at, code in enumerate(codes) if code in codes[:at]]:
        raise InvalidUsage(f"{said} has %{twice[0]} twice")
    for alike in ("Yy", "mbBj", "dj", "HI"):
        if len(both := [code for code in codes if code in alike]) > 1:
            raise InvalidUsage(f"{said} has %{both[0]} and %{both[1]}; write one of them")
    if not ({*"Yy"} & {*codes} and ("j" in codes or ("d" in codes and {*"mbB"} & {*codes}))):
        raise InvalidUsage(f"{said} does not say which day it is: it needs a year, a month and a day, as %Y-%m-%d")
    if not has_time and (clock := [code for code in codes if code in _TIME]):
        raise InvalidUsage(f"{said} has %{clock[0]}, and the column is a date: declare it timestamp")
    for code, others in _NEEDS:
        if code in codes and not {*others} & {*codes}:
            raise InvalidUsage(f"{said} has %{code} without %{' or %'.join(others)}")


def regex(text: str) -> str:
    """The regular expression of RE2 that the texts of a format match, whole; its groups are called by their codes."""
    return r"(?i)\A" + "".join(_parts(text)) + r"\z"


def _parts(text: str) -> Iterator[str]:
    tokens = re.findall(r"%.|[^%]", text, re.DOTALL)
    for at, token in enumerate(tokens):
        beside = (tokens[at - 1] if at else "", *tokens[at + 1 : at + 2])
        code = token[1:]
        if code not in CODES:
            yield re.escape(token[-1])
        elif code in _DIGITS and any(other[-1:].isdecimal() or other[1:] in _NUMBERS for other in beside if other):
            yield f"(?P<{code}>[0-9]{{{_DIGITS[code]}}})"  # 2024111 would be two days
        else:
            yield f"(?P<{code}>{CODES[code]})"

"""Numbers of CSV as other countries write them: another decimal point, digits in groups of three."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode.strict import Misfit, shown
from tidemark.arrow.rows.arrays import first_true
from tidemark.model.collection import ValueType
from tidemark.model.dialect import Csv


def plain_numbers(array: pa.Array, declared: ValueType, dialect: Csv) -> pa.Array:
    """Texts of numbers with a point, and without groups. Texts of no such character stay as they are.

    Raises:
        Misfit: A text has a point, or groups, that are not those of the dialect.
    """
    number, marks = _patterns(dialect)
    wrong = pc.and_(pc.match_substring_regex(array, marks), pc.invert(pc.match_substring_regex(array, number)))
    if (at := first_true(pc.fill_null(wrong, False))) >= 0:
        groups = f", and {dialect.thousands!r} groups three digits" if dialect.thousands else ""
        holds = f"is declared {declared} and holds {shown(array[at].as_py())}"
        raise Misfit(f"{holds}; its decimal point is {dialect.decimal!r}{groups}", at)
    if dialect.thousands:
        array = pc.replace_substring(array, dialect.thousands, "")
    return array if dialect.decimal == "." else pc.replace_substring(array, dialect.decimal, ".")


@lru_cache(maxsize=8)
def _patterns(dialect: Csv) -> tuple[str, str]:
    """What a number looks like, and what has a character that may be a point or between groups."""
    point, between = re.escape(dialect.decimal), re.escape(dialect.thousands)
    groups = rf"[0-9]{{1,3}}(?:{between}[0-9]{{3}})+|" if dialect.thousands else ""
    return rf"^[+-]?(?:{groups}[0-9]*)(?:{point}[0-9]*)?(?:[eE][+-]?[0-9]+)?$", rf"[.,]|{point}|{between or point}"

"""The text of a condition, as `delete_when`, `only` and `where` have it: the little of SQL that needs no explaining.

    condition  := term (OR term)*            term  := factor (AND factor)*
    factor     := NOT factor | ( condition ) | column test
    test       := op literal | IS [NOT] NULL | [NOT] IN ( literal, … ) | [NOT] BETWEEN literal AND literal
    op         := =  ==  !=  <>  <  <=  >  >=
    literal    := 'text' ('' is a quote) | 12 | -1.5 | 2e3 | TRUE | FALSE

Column names are written plainly or in double quotes; keywords in any case. Where a condition is about what a source
reads, a name may have dots: the field of a message, `source.table`. Dates and timestamps are compared with texts
in ISO 8601, bytes with texts in base64, json with texts that are JSON (`doc = '{"a": 1}'`): equal or not. What it means
is said by the tree (tree.py). Why it is read by hand, and not by sqlglot: docs/decisions/0051.

A `where` may be COLUMN=VALUE instead, which `read_where` takes for a column equal to a value that is not quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, NoReturn

from tidemark.errors import InvalidUsage
from tidemark.model import decimals
from tidemark.model.column import ColumnType, ValueType
from tidemark.model.condition.tree import (
    And,
    Compare,
    Condition,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    check_types,
    columns,
)

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKENS = r"""\s*(?:
    (?P<text>'(?:[^']|'')*')
  | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<op>==|!=|<>|<=|>=|=|<|>)
  | (?P<mark>[(),])
  | (?P<name>NAME|"[^"]+")
  | (?P<end>\Z)
)"""
_TOKEN = re.compile(_TOKENS.replace("NAME", _NAME), re.VERBOSE)
_TOKEN_OF_SOURCE = re.compile(_TOKENS.replace("NAME", rf"{_NAME}(?:\.{_NAME})*"), re.VERBOSE)
_COLUMN_VALUE = re.compile(r"""\s*([A-Za-z_][A-Za-z0-9_]*)=((?!=)[^\s'"`\u2018-\u201f()\[\]{}<>!,]*)\s*""")
_KEYWORDS = frozenset({"AND", "OR", "NOT", "IS", "IN", "NULL", "TRUE", "FALSE"})
_NOT_HERE = frozenset({"ILIKE", "LIKE", "REGEXP", "RLIKE"})
_CANONICAL = {"==": "=", "<>": "!="}
MAX_DEPTH = 100
"""Conditions nested deeper than this are refused: nobody wrote them by hand."""
MAX_CHARACTERS = 2**16
"""Of a condition: a list of some ten thousand codes."""
_MAX_DIGITS = 400
"""No double has more before its point."""
_BOTH_SPELLINGS = (
    "write COLUMN=VALUE, or a condition such as COLUMN = 'VALUE'; a value without quotes has no blanks, commas, "
    "brackets or <>!"
)
_SHOWN = 100
"""Characters of a long condition that an error shows around the position it is about."""


@lru_cache(maxsize=16)
def parse(text: str, of: str = "delete_when", *, dotted: bool = False) -> Condition:
    """Read a condition, whose names may have dots if `dotted`; errors call it `of`.

    Raises:
        InvalidUsage: With the position of the first thing that does not fit.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidUsage(f"{of} has {len(text)} characters; it may have {MAX_CHARACTERS}")
    return _Parser(text, of, _TOKEN_OF_SOURCE if dotted else _TOKEN).whole()


class ColumnValue(NamedTuple):
    """That a column is equal to a value, which is text as answers write it; None: null."""

    column: str
    value: str | None


def read_where(text: str, types: Mapping[str, ValueType]) -> Condition | ColumnValue:
    """Read a `where`: what the grammar reads and the columns' types allow is a condition, other COLUMN=VALUE a value.

    COLUMN=VALUE has no blanks, quotes, brackets or `<>!,` in its value, which does not begin with `=`. So `n=5` of a
    number is the condition; `code=5` of a text, `carrier=UA` and `day=2013-01-01` are values, also where a column is
    called UA. `v=null` is null, but in a text column the text.

    Args:
        types: The types of the columns that it may look at. Other columns are for the caller to refuse.

    Raises:
        InvalidUsage: For what is neither, with both spellings; for a condition that compares a column with a literal
            of another type.
    """
    pair = _COLUMN_VALUE.fullmatch(text)
    try:
        condition = parse(text, "where")
    except InvalidUsage as error:
        if pair is None:
            raise InvalidUsage(f"{error}; {_BOTH_SPELLINGS}") from None
    else:
        try:
            if types.keys() >= set(columns(condition)):
                check_types(condition, types.__getitem__, "where")
            return condition
        except InvalidUsage:
            if pair is None:
                raise
    name, value = pair.groups()
    return ColumnValue(name, None if value == "null" and types.get(name) is not ColumnType.STRING else value)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent over the tokens; `peek` is the one not yet used."""

    def __init__(self, text: str, of: str, token: re.Pattern[str]) -> None:
        self._text, self._of, self._token = text, of, token
        self._tokens = self._tokenised()
        self._peek = next(self._tokens)
        self._depth = 0

    def whole(self) -> Condition:
        condition = self._condition()
        if self._peek.kind != "end":
            self._fail("AND, OR or the end")
        return condition

    def _condition(self) -> Condition:
        terms = [self._term()]
        while self._take("OR"):
            terms.append(self._term())
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _term(self) -> Condition:
        factors = [self._factor()]
        while self._take("AND"):
            factors.append(self._factor())
        return factors[0] if len(factors) == 1 else And(tuple(factors))

    def _factor(self) -> Condition:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidUsage(f"{self._of} is nested deeper than {MAX_DEPTH}")
        condition: Condition
        if self._take("NOT"):
            condition = Not(self._factor())
        elif self._take("("):
            condition = self._condition()
            self._demand(")")
        else:
            condition = self._test(self._column())
        self._depth -= 1
        return condition

    def _test(self, column: str) -> Condition:
        if self._take("IS"):
            negated = self._take("NOT")
            self._demand("NULL")
            return Not(IsNull(column)) if negated else IsNull(column)
        if self._take("NOT"):
            if self._take_word("BETWEEN"):
                return Not(self._between(column))
            if not self._take("IN"):
                self._fail(f"IN or BETWEEN{self._without()}")
            return Not(In(column, self._literals()))
        if self._take("IN"):
            return In(column, self._literals())
        if self._take_word("BETWEEN"):
            return self._between(column)
        if self._peek.kind != "op":
            self._fail(f"a comparison, IS, IN or BETWEEN{self._without()}")
        op = self._next().text
        return Compare(column, _CANONICAL.get(op, op), self._literal())

    def _without(self) -> str:
        """What is said where the text has a word of SQL that conditions do not have."""
        word = self._peek.text.upper()
        return f" (conditions have no {word})" if word in _NOT_HERE else ""

    def _between(self, column: str) -> Condition:
        lower = self._literal()
        self._demand("AND")
        return And((Compare(column, ">=", lower), Compare(column, "<=", self._literal())))

    def _literals(self) -> tuple[Literal, ...]:
        self._demand("(")
        literals = [self._literal()]
        while self._take(","):
            literals.append(self._literal())
        self._demand(")")
        return tuple(literals)

    def _literal(self) -> Literal:
        kind, text, _ = self._peek
        if kind == "text":
            self._next()
            return text[1:-1].replace("''", "'")
        if kind == "number":
            if len(text) > _MAX_DIGITS or not decimals.NUMBER.fullmatch(text) or abs(float(text)) == float("inf"):
                self._fail("a number that fits a double")
            self._next()
            return int(text) if re.fullmatch(r"-?\d+", text) else Decimal(text)
        if self._take("TRUE"):
            return True
        if self._take("FALSE"):
            return False
        if kind == "keyword" and text == "NULL":
            self._fail("a value; a column is compared with null by IS NULL")
        return self._fail("a text in single quotes, a number, TRUE or FALSE")

    def _column(self) -> str:
        if self._peek.kind != "name":
            self._fail("a column name")
        return self._next().text.strip('"')

    def _take(self, word: str) -> bool:
        if self._peek.kind in ("keyword", "mark") and self._peek.text == word:
            self._next()
            return True
        return False

    def _take_word(self, word: str) -> bool:
        """The same of a word that may name a column elsewhere."""
        if self._peek.kind == "name" and self._peek.text.upper() == word:
            self._next()
            return True
        return False

    def _demand(self, word: str) -> None:
        if not self._take(word):
            self._fail(word)

    def _next(self) -> _Token:
        token = self._peek
        if token.kind != "end":
            self._peek = next(self._tokens)
        return token

    def _tokenised(self) -> Iterator[_Token]:
        at = 0
        while True:
            match = self._token.match(self._text, at)
            if match is None or match.lastgroup is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                what = (
                    "a text that is never closed"
                    if self._text[start] == "'"
                    else f"{self._text[start]!r} is not understood"
                )
                raise InvalidUsage(f"{self._of}: {what} {self._place(start)}")
            kind, text = match.lastgroup, match.group(match.lastgroup)
            if kind == "name" and text.upper() in _KEYWORDS:
                kind, text = "keyword", text.upper()
            yield _Token(kind, text, match.start(match.lastgroup))
            at = match.end()

    def _fail(self, expected: str) -> NoReturn:
        found = repr(self._peek.text[:_SHOWN]) if self._peek.kind != "end" else "the end"
        raise InvalidUsage(f"{self._of}: expected {expected}, found {found} {self._place(self._peek.at)}")

    def _place(self, at: int) -> str:
        text = self._text
        if len(text) > 2 * _SHOWN:
            start = max(0, at - _SHOWN // 2)
            cut = text[start : start + _SHOWN]
            return f"at position {at + 1}, in {('…' if start else '') + cut + '…'!r}"
        return f"at position {at + 1} of {text!r}"

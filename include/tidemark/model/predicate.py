"""The grammar of `delete_when` and of `where`: a condition on one row, in the little of SQL that needs no explaining.

    condition  := term (OR term)*            term  := factor (AND factor)*
    factor     := NOT factor | ( condition ) | column test
    test       := op literal | IS [NOT] NULL | [NOT] IN ( literal, … )
    op         := =  ==  !=  <>  <  <=  >  >=
    literal    := 'text' ('' is a quote) | 12 | -1.5 | 2e3 | TRUE | FALSE

Column names are written plainly or in double quotes; keywords in any case. Dates and timestamps are compared with texts
in ISO 8601, bytes with texts in base64, json with texts that are JSON (`doc = '{"a": 1}'`): equal or not. Numbers are
exact: 0.1 beside a decimal is a tenth; beside a float it is the double nearest to it. The logic is SQL's, three-valued:
a comparison with null is unknown, and only what is true holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, NoReturn

from tidemark.errors import InvalidUsage
from tidemark.model import canonical_json, decimals, encoded_bytes
from tidemark.model.collection import ColumnType, DecimalType, ValueType

Literal = bool | int | Decimal | str

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<op>==|!=|<>|<=|>=|=|<|>)
      | (?P<mark>[(),])
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*|"[^"]+")
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"AND", "OR", "NOT", "IS", "IN", "NULL", "TRUE", "FALSE"})
_CANONICAL = {"==": "=", "<>": "!="}
MAX_DEPTH = 100
"""Conditions nested deeper than this are refused: nobody wrote them by hand."""
MAX_CHARACTERS = 2**16
"""Of a condition: a list of some ten thousand codes."""
_MAX_DIGITS = 400
"""No double has more before its point."""
_SHOWN = 100
"""Characters of a long condition that an error shows around the position it is about."""


@dataclass(frozen=True)
class Compare:
    """`column op literal`; op is one of = != < <= > >=."""

    column: str
    op: str
    literal: Literal


@dataclass(frozen=True)
class IsNull:
    column: str


@dataclass(frozen=True)
class In:
    column: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Not:
    inner: Predicate


@dataclass(frozen=True)
class And:
    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Or:
    left: Predicate
    right: Predicate


Predicate = Compare | IsNull | In | Not | And | Or


@lru_cache(maxsize=16)
def parse(text: str, of: str = "delete_when") -> Predicate:
    """The condition written in `text`, called `of`. Raises InvalidUsage with the position of the first thing that does
    not fit.

    Its depth is bounded: chains of AND and OR, which associate, become trees of the least depth.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidUsage(f"{of} has {len(text)} characters; it may have {MAX_CHARACTERS}")
    return _Parser(text, of).whole()


def columns(predicate: Predicate) -> tuple[str, ...]:
    """The columns a condition looks at, each once, in order of appearance."""
    return tuple(dict.fromkeys(leaf.column for leaf in _leaves(predicate)))


def check_types(predicate: Predicate, type_of: Callable[[str], ValueType], of: str = "delete_when") -> None:
    """Raise InvalidUsage if a column is compared with a literal its type does not know."""
    for leaf in _leaves(predicate):
        if isinstance(leaf, IsNull):
            continue
        column_type = type_of(leaf.column)
        for literal in (leaf.literal,) if isinstance(leaf, Compare) else leaf.literals:
            if not _fits(literal, column_type):
                hint = "a number" if isinstance(column_type, DecimalType) else _HINTS[column_type]
                told = str(literal) if isinstance(literal, Decimal) else repr(literal)
                raise InvalidUsage(
                    f"{of} compares column {leaf.column}, of type {column_type}, with {told}; write {hint}"
                )
        if column_type is ColumnType.JSON and isinstance(leaf, Compare) and leaf.op not in ("=", "!="):
            raise InvalidUsage(f"{of} orders column {leaf.column}, which is json and in no order; write = or !=, or IN")
        if column_type is ColumnType.BOOL and isinstance(leaf, Compare) and leaf.op not in ("=", "!="):
            raise InvalidUsage(f"{of} orders column {leaf.column}, of type bool; write {leaf.column} = TRUE or FALSE")


def bound(predicate: Predicate, type_of: Callable[[str], ValueType]) -> Predicate:
    """The condition with its literals as the columns hold them: JSON as its canonical text."""

    def held(leaf: Compare | In, literal: Literal) -> Literal:
        of_json = type_of(leaf.column) is ColumnType.JSON
        return canonical_json.canonical(literal) if of_json and isinstance(literal, str) else literal

    match predicate:
        case Not(inner):
            return Not(bound(inner, type_of))
        case And(left, right) | Or(left, right):
            return type(predicate)(bound(left, type_of), bound(right, type_of))
        case Compare():
            return replace(predicate, literal=held(predicate, predicate.literal))
        case In():
            return replace(predicate, literals=tuple(held(predicate, one) for one in predicate.literals))
        case IsNull():
            return predicate


_HINTS = {
    ColumnType.BOOL: "TRUE or FALSE",
    ColumnType.INT: "a number",
    ColumnType.FLOAT: "a number",
    ColumnType.STRING: "a text in single quotes",
    ColumnType.DATE: "'2013-01-02'",
    ColumnType.TIMESTAMP: "'2013-01-02T03:04:05Z'",
    ColumnType.BYTES: "the base64 of bytes in single quotes, such as '/wA='",
    ColumnType.JSON: """JSON in single quotes, such as '{"a": 1}'""",
}


def _fits(literal: Literal, column_type: ValueType) -> bool:
    match column_type:
        case ColumnType.BOOL:
            return isinstance(literal, bool)
        case ColumnType.INT | ColumnType.FLOAT | DecimalType():
            return isinstance(literal, int | Decimal) and not isinstance(literal, bool)
        case ColumnType.STRING:
            return isinstance(literal, str)
        case ColumnType.BYTES | ColumnType.JSON:
            read = canonical_json.canonical if column_type is ColumnType.JSON else encoded_bytes.decoded
            try:
                return isinstance(literal, str) and read(literal) is not None
            except ValueError:
                return False
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            parse_text = date.fromisoformat if column_type is ColumnType.DATE else datetime.fromisoformat
            try:
                return isinstance(literal, str) and bool(parse_text(literal))
            except ValueError:
                return False


def _leaves(predicate: Predicate) -> Iterator[Compare | IsNull | In]:
    match predicate:
        case Not(inner):
            yield from _leaves(inner)
        case And(left, right) | Or(left, right):
            yield from _leaves(left)
            yield from _leaves(right)
        case _:
            yield predicate


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    """Recursive descent over the tokens; `peek` is the one not yet used."""

    def __init__(self, text: str, of: str) -> None:
        self._text, self._of = text, of
        self._tokens = self._tokenised()
        self._peek = next(self._tokens)
        self._depth = 0

    def whole(self) -> Predicate:
        predicate = self._condition()
        if self._peek.kind != "end":
            self._fail("AND, OR or the end")
        return predicate

    def _condition(self) -> Predicate:
        terms = [self._term()]
        while self._take("OR"):
            terms.append(self._term())
        return _joined(Or, terms)

    def _term(self) -> Predicate:
        factors = [self._factor()]
        while self._take("AND"):
            factors.append(self._factor())
        return _joined(And, factors)

    def _factor(self) -> Predicate:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidUsage(f"{self._of} is nested deeper than {MAX_DEPTH}")
        predicate: Predicate
        if self._take("NOT"):
            predicate = Not(self._factor())
        elif self._take("("):
            predicate = self._condition()
            self._demand(")")
        else:
            predicate = self._test(self._column())
        self._depth -= 1
        return predicate

    def _test(self, column: str) -> Predicate:
        if self._take("IS"):
            negated = self._take("NOT")
            self._demand("NULL")
            return Not(IsNull(column)) if negated else IsNull(column)
        if self._take("NOT"):
            self._demand("IN")
            return Not(In(column, self._literals()))
        if self._take("IN"):
            return In(column, self._literals())
        if self._peek.kind != "op":
            self._fail("a comparison, IS or IN")
        op = self._next().text
        return Compare(column, _CANONICAL.get(op, op), self._literal())

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
            match = _TOKEN.match(self._text, at)
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


def _joined(kind: type[And] | type[Or], conditions: Sequence[Predicate]) -> Predicate:
    """One condition of several, as two halves of halves; of no more than three, in the order of reading."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2 + len(conditions) % 2
    return kind(_joined(kind, conditions[:middle]), _joined(kind, conditions[middle:]))

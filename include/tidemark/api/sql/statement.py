"""A statement of SQL, with what DuckDB does not know written as names of tables: as-of clauses and our functions.

Only these spans of the text are replaced; all else is DuckDB's, as it was written. An example:

    SELECT f.carrier FROM flights FOR TIMESTAMP AS OF '2013-01-03' f JOIN changes('carriers', NULL, '2013-01-02') ON …
    SELECT f.carrier FROM "flights 1" f JOIN "carriers 2" AS "carriers" ON …

and `sources` says that `flights 1` is `as_of` of flights with `time='2013-01-03'`, and `carriers 2` its `changes`. The
text is split by DuckDB's own tokenizer, so that what is in texts, comments and quoted names is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from tidemark.errors import InvalidUsage, plain_line

Given = str | int | bool | None
"""The value of an argument."""


@dataclass(frozen=True)
class Source:
    """What a table of a statement is: a `function` of a collection, with its arguments by name."""

    collection: str
    function: str = "as_of"
    arguments: Mapping[str, Given] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """A text that DuckDB reads; the tables in it that stand for sources; and all other names in it, which may be
    collections as they are now, or were at the wall-clock time `committed`. So are sources that say no time."""

    text: str
    sources: Mapping[str, Source]
    names: frozenset[str]
    committed: int | None = None


FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "as_of": ("collection", "time", "event_time", "multiplicity", "committed"),
    "changes": ("collection", "after", "upto", "net", "committed_after", "committed_upto"),
    "windows": ("collection", "time", "open", "committed"),
    "latest_at": ("collection", "timeline", "t", "within", "time", "event_time", "committed"),
}
"""Our functions, and what their arguments are called. Those of the wall clock are given by their names alone."""
_BY_NAME = "committed"
_BEFORE_TABLES = ("from", "join", ",", "lateral", "pivot", "pivot_wider", "unpivot", "pivot_longer")
_CLOCKS = {
    "timestamp": "time",
    "system_time": "time",
    "version": "version",
    "system_version": "version",
    "committed": "committed",
}
MOST_CHARACTERS = 1_000_000
"""A statement may have so many: no person writes a longer one."""


def parsed(text: str) -> Statement:
    """A statement with its sources and other names. InvalidUsage for arguments that our functions do not take, and for
    clauses that say no time."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidUsage(f"the statement has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
    if "\0" in text:
        raise InvalidUsage("the statement has a null character in it")
    return _Reading(_tokens(text)).statement()


def quoted(name: str) -> str:
    """A name as SQL has it in any case."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    """As it is written, with what follows it up to the next one: `flights `."""

    @property
    def word(self) -> str:
        """In lower case, without what follows."""
        return self.text.strip().lower()

    @property
    def name(self) -> str | None:
        """The name that it is; None: it is none."""
        if self.kind not in ("identifier", "keyword"):
            return None
        word = self.text.strip()
        if word.startswith('"'):
            return word[1:-1].replace('""', '"') if len(word) > 1 and word.endswith('"') else None
        return word.lower()


_END = _Token("end", "")


def _tokens(text: str) -> list[_Token]:
    encoded = text.encode("utf-8", "surrogatepass")
    found = [(start, kind.name) for start, kind in duckdb.tokenize(text)]
    if not found or found[0][0]:
        found = [(0, "comment"), *found]
    ends = [start for start, _ in found[1:]] + [len(encoded)]
    return [
        _Token(kind, encoded[start:end].decode("utf-8", "surrogatepass"))
        for (start, kind), end in zip(found, ends, strict=True)
    ]


def outer_words(text: str) -> Iterator[str]:
    """The words of a statement outside of parentheses, in lower case."""
    depth = 0
    for token in _tokens(text):
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if not depth:
            yield token.word


class _Reading:
    """One pass over the tokens of a statement."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._sources: dict[str, Source] = {}
        self._names: set[str] = set()

    def statement(self) -> Statement:
        written, at = [], 0
        while at < len(self._tokens):
            found = self._source_at(at)
            if found is None:
                written.append(self._tokens[at].text)
                if (name := self._tokens[at].name) is not None:
                    self._names.add(name)
                at += 1
            else:
                source, at = found
                written.append(self._named(source, at))
        return Statement("".join(written), self._sources, frozenset(self._names))

    def _named(self, source: Source, behind: int) -> str:
        """The name of a source, which is called as its collection unless an alias follows."""
        name = f"{source.collection} {len(self._sources) + 1}"
        self._sources[name] = source
        following = self._at(behind)
        aliased = following.word == "as" or following.kind == "identifier"
        return f"{quoted(name)} " if aliased else f"{quoted(name)} AS {quoted(source.collection)} "

    def _at(self, at: int) -> _Token:
        """The token at a place, or behind comments there."""
        return self._tokens[self._next(at)] if self._next(at) < len(self._tokens) else _END

    def _next(self, at: int) -> int:
        while at < len(self._tokens) and self._tokens[at].kind == "comment":
            at += 1
        return at

    def _source_at(self, at: int) -> tuple[Source, int] | None:
        """The source that begins at a token, and the place behind it; None: nothing of ours begins there."""
        name = self._tokens[at].name
        if name is None or self._before(at) == ".":
            return None
        behind = self._next(at + 1)
        if name in FUNCTIONS and self._at(behind).word == "(" and self._before(at) in _BEFORE_TABLES:
            return self._call(name, behind + 1)
        word = self._at(behind).word
        if word == "for" and self._at(behind + 1).word in _CLOCKS:
            return self._clause(name, behind + 1)
        if word in _CLOCKS and self._at(behind + 1).word == "as" and self._at(behind + 2).word == "of":
            return self._clause(name, behind)
        if word == "at" and self._at(behind + 1).word == "(" and self._at(behind + 2).word in _CLOCKS:
            return self._at_clause(name, behind + 2)
        return None

    def _before(self, at: int) -> str:
        at -= 1
        while at >= 0 and self._tokens[at].kind == "comment":
            at -= 1
        return self._tokens[at].word if at >= 0 else ""

    def _clause(self, name: str, at: int) -> tuple[Source, int]:
        """`TIMESTAMP AS OF '…'`, which begins at a place."""
        clock = self._at(at).word
        at = self._next(at) + 1
        for word in ("as", "of"):
            if self._at(at).word != word:
                raise InvalidUsage(f"FOR {clock.upper()}: write FOR {clock.upper()} AS OF and a time")
            at = self._next(at) + 1
        value, at = self._value(at, f"{clock.upper()} AS OF")
        return self._of_clock(name, clock, value), at

    def _at_clause(self, name: str, at: int) -> tuple[Source, int]:
        """`TIMESTAMP => '…')`, DuckDB's own way to say it, which begins at a place."""
        clock = self._at(at).word
        at = self._next(at) + 1
        if self._at(at).word != "=>":
            raise InvalidUsage(f"AT ({clock.upper()}: write AT ({clock.upper()} => …)")
        value, at = self._value(self._next(at) + 1, f"AT ({clock.upper()} =>")
        if self._at(at).word != ")":
            raise InvalidUsage(f"AT ({clock.upper()} => …: the closing ) is missing")
        return self._of_clock(name, clock, value), self._next(at) + 1

    @staticmethod
    def _of_clock(name: str, clock: str, value: Given) -> Source:
        which = _CLOCKS[clock]
        if which == "version" and (isinstance(value, bool) or not isinstance(value, int)):
            raise InvalidUsage(f"{clock.upper()} AS OF {value!r}: a version is a whole number; TIMESTAMP takes a time")
        if value is None or isinstance(value, bool):
            raise InvalidUsage(f"{clock.upper()} AS OF {value!r} is no time; write it in single quotes")
        return Source(name, "as_of", {which: value})

    def _call(self, function: str, at: int) -> tuple[Source, int]:
        """The arguments of one of our functions, from a place behind its `(` on."""
        names, given = FUNCTIONS[function], dict[str, Given]()
        in_order = [name for name in names if not name.startswith(_BY_NAME)]
        how = f"{function}({', '.join(names)})"
        while self._at(at).word != ")":
            if given:
                if self._at(at).word != ",":
                    raise InvalidUsage(f"{function}: {_seen(self._at(at))} where , or ) should be; it is {how}")
                at = self._next(at) + 1
            name = self._at(at).name
            if name is not None and self._at(self._next(at) + 1).word in ("=>", ":="):
                at = self._next(self._next(at) + 1) + 1
            elif len(given) < len(in_order):
                name = in_order[len(given)]
            if name not in names or name in given:
                raise InvalidUsage(f"{function}: {name if name else 'one argument'} is too many; it is {how}")
            given[name], at = self._value(at, f"{function}: {name}")
        collection = given.pop("collection", None)
        if not isinstance(collection, str):
            raise InvalidUsage(f"{function}: write the name of a collection in single quotes first; it is {how}")
        return Source(collection, function, given), self._next(at) + 1

    def _value(self, at: int, where: str) -> tuple[Given, int]:
        """The value at a place, and the place behind it."""
        at = self._next(at)
        if self._at(at).word in ("timestamp", "timestamptz", "date"):
            at = self._next(at + 1)
        sign = ""
        if self._at(at).word == "-":
            sign, at = "-", self._next(at + 1)
        token = self._at(at)
        text = token.text.strip()
        if token.kind == "string_const" and text.startswith("'") and len(text) > 1 and text.endswith("'") and not sign:
            return text[1:-1].replace("''", "'"), at + 1
        if token.kind == "numeric_const" and text.replace("_", "").isdecimal():
            return int(sign + text.replace("_", "")), at + 1
        if token.word in _WORDS and not sign:
            return _WORDS[token.word], at + 1
        raise InvalidUsage(f"{where}: {_seen(token)} is no value that can be read here; write it in single quotes")


_WORDS: Mapping[str, bool | None] = {"null": None, "true": True, "false": False}


def _seen(token: _Token) -> str:
    return "the end of the statement" if token is _END else plain_line(token.text.strip(), 80)


def arguments(source: Source) -> dict[str, Any]:
    """The arguments of a source without those that are null."""
    return {name: value for name, value in source.arguments.items() if value is not None}

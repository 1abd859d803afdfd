"""A YAML file as plain values, with the line of each of them. Keys written twice are refused.

Built from the parser's events and not by PyYAML's own composer, which recurses as deep as a file asks and lets aliases
multiply without bound: here depth, values and what aliases repeat are counted, whatever a file holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from tidemark.config.text import text_of
from tidemark.errors import InvalidUsage

Loc = tuple[str | int, ...]
"""Where a value is: the keys and list positions that lead to it."""

MAX_DEPTH = 30
MAX_VALUES = 20_000
"""Fields, list elements and what aliases repeat of them: a thousand columns with all that can be said of them."""
MAX_LITERAL = 100
"""Characters of what is not a text: a number of more digits takes longer to convert than all the rest of a file."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NEVER = re.compile("[\0\ud800-\udfff]")
"""Written as escapes YAML knows, \\0 and \\ud800; neither has a place in a name, a path or a database."""
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'(?:''|[^'])*'|(?:^|\s)#.*""")
_TEMPLATED = re.compile(r"[^\s,\[{]*(?:\{\{[^{}]*\}\}[^\s,\]{}]*)+")
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp"))


@dataclass(frozen=True)
class Document:
    """The content of a file, and the line (from 1) of every key and list element in it."""

    path: str
    content: Any
    lines: dict[Loc, int] = field(default_factory=dict)

    def line(self, loc: Loc) -> int:
        """The line of the value at `loc`, or of the nearest thing around it that is there."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)


def read(path: str | Path) -> Document:
    """Read one YAML document. Raises InvalidUsage for what is not there, is not YAML, or names a key twice."""
    text = text_of(path)
    loader = _LOADER(text)
    try:
        building = _Building(str(path), _events(loader))
        return Document(str(path), building.document(), building.lines)
    except yaml.MarkedYAMLError as error:
        raise InvalidUsage(f"{path}:{_not_yaml(text.splitlines(), error)}") from None
    except _NoName as name:
        line = name.args[0]
        wrong = _unquoted(text.splitlines()[line - 1]) or "a field name must be plain text"
        raise InvalidUsage(f"{path}:{line}: {wrong}") from None
    except yaml.YAMLError as error:
        raise InvalidUsage(f"{path}:1: not YAML: {str(error).splitlines()[0]}") from None
    finally:
        loader.dispose()


class _NoName(Exception):
    """Something that is no text is where a field's name should be; with its line."""


def _not_yaml(lines: list[str], error: yaml.MarkedYAMLError) -> str:
    """The line of an error of the parser, and what is wrong there, with what to write where that is known."""
    marks = [mark for mark in (error.problem_mark, error.context_mark) if mark]
    for mark in marks:
        line = lines[mark.line] if mark.line < len(lines) else ""
        at_fault = any(word in str(error.problem) for word in ("token", "tab character"))
        if at_fault and "\t" in line[: mark.column + 1]:
            return f"{mark.line + 1}: not YAML: a tab; lines begin with spaces: write two in place of each tab"
        if unquoted := _unquoted(line):
            return f"{mark.line + 1}: {unquoted}"
    return f"{marks[0].line + 1 if marks else 1}: not YAML: {error.problem or error.context}"


def _unquoted(line: str) -> str:
    """What to write where a line has `{{` outside of quotes, which begins a mapping in YAML; "" where it has not."""
    bare = _QUOTED.sub("", line)
    if "{{" not in bare:
        return ""
    text = _TEMPLATED.search(bare)
    advice = f'write "{text[0]}"' if text else "quote it as a whole"
    return f"a text with {{{{ needs quotes: {advice}"


def _events(loader: Any) -> Iterator[Any]:
    while loader.check_event():
        yield loader.get_event()


def _other_base(text: str) -> str:
    """What is wrong about a number that YAML 1.1 reads to another base than it looks like; "" if nothing is."""
    if ":" in text:
        return (
            f"{text} is a number to the base 60 in YAML 1.1; quote it if it is a text, and write a duration with its "
            "units, as 1h30m or 90s"
        )
    if _OCTAL.fullmatch(text):
        plain = text.replace("_", "").lstrip("+-").lstrip("0") or "0"
        return f"{text} is a number to the base 8 in YAML 1.1; write {plain}, or quote it if it is a text"
    return ""


@dataclass(frozen=True)
class _Built:
    """A value, how many values it is made of, and how deep it reaches."""

    value: Any
    values: int
    depth: int


_OPEN = _Built(None, 0, 0)
"""Represents an anchored value that is still being built."""


class _Building:
    """Values from events, by recursive descent no deeper than MAX_DEPTH."""

    def __init__(self, path: str, events: Iterator[Any]) -> None:
        self.lines: dict[Loc, int] = {}
        self._path, self._events = path, events
        self._anchors: dict[str, _Built] = {}
        self._values = 0
        self._resolver: Any = Resolver()
        self._constructor = SafeConstructor()

    def document(self) -> Any:
        content = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refusal(event, "a second document begins; a collection file has one")
                content = self._node(next(self._events), (), 0).value
        return content

    def _node(self, event: Any, loc: Loc, depth: int) -> _Built:
        self.lines.setdefault(loc, self._line(event))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._count(event, 1, depth)
        if event.anchor:
            self._anchors[event.anchor] = _OPEN
        if isinstance(event, yaml.ScalarEvent):
            built = _Built(self._scalar(event), 1, 0)
        else:
            if not event.implicit:
                raise self._refusal(event, f"the tag {event.tag} is not allowed; remove it")
            mapping = isinstance(event, yaml.MappingStartEvent)
            built = self._mapping(loc, depth) if mapping else self._sequence(loc, depth)
        if event.anchor:
            self._anchors[event.anchor] = built
        return built

    def _sequence(self, loc: Loc, depth: int) -> _Built:
        before, deepest = self._values, 0
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = self._node(event, (*loc, len(items)), depth + 1)
            items.append(item.value)
            deepest = max(deepest, item.depth)
        return _Built(items, self._values - before + 1, deepest + 1)

    def _mapping(self, loc: Loc, depth: int) -> _Built:
        before, deepest = self._values, 0
        content: dict[Any, Any] = {}
        merged: list[Any] = []
        seen: set[str] = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = self._line(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise _NoName(self._line(event))
            name, merges = event.value, self._tag(event) == _MERGE
            key = name if merges else self._key(event)
            if name in seen or key in content:
                raise self._refusal(event, f"field {name[:MAX_LITERAL]!r} is written twice")
            seen.add(name)
            self.lines[(*loc, name)] = line
            built = self._node(next(self._events), (*loc, name), depth + 1)
            deepest = max(deepest, built.depth)
            if merges:
                merged += built.value if isinstance(built.value, list) else [built.value]
                if not all(isinstance(one, dict) for one in merged):
                    raise self._refusal(event, "<< takes over the fields of a mapping, and there is none")
            else:
                content[key] = built.value
        for one in merged:
            content |= {key: value for key, value in one.items() if key not in content}
        return _Built(content, self._values - before + 1, deepest + 1)

    def _alias(self, event: Any, depth: int) -> _Built:
        built = self._anchors.get(event.anchor)
        if built is None:
            raise self._refusal(event, f"alias *{event.anchor} has no anchor &{event.anchor} before it")
        if built is _OPEN:
            raise self._refusal(event, "an alias refers to something around itself")
        self._count(event, built.values, depth + built.depth)
        return built

    def _count(self, event: Any, values: int, depth: int) -> None:
        self._values += values
        if depth > MAX_DEPTH:
            raise self._refusal(event, f"nested deeper than {MAX_DEPTH}")
        if self._values > MAX_VALUES:
            raise self._refusal(event, f"more than {MAX_VALUES} values, those that aliases repeat included")

    def _scalar(self, event: Any) -> Any:
        tag = self._tag(event)
        if tag not in _TAGS:
            raise self._refusal(event, f"{event.value[:MAX_LITERAL]!r} has the tag {tag}, which is not allowed")
        if tag == _TEXT:
            return self._text(event)
        if len(event.value) > MAX_LITERAL:
            raise self._refusal(event, f"a value of {len(event.value)} characters; quote it if it is a text")
        if wrong := _other_base(event.value) if tag in _NUMBERS else "":
            raise self._refusal(event, wrong)
        node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        try:
            return self._constructor.construct_object(node)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            raise self._refusal(event, f"{event.value!r} is not a value: {error}") from None

    def _key(self, event: Any) -> Any:
        """What a field is called, as it is written: YAML takes `on`, `off`, `yes` and `no` for truths."""
        value = self._scalar(event)
        return str(event.value) if value is None or isinstance(value, bool) else value

    def _text(self, event: Any) -> str:
        if wrong := _NEVER.search(event.value):
            raise self._refusal(event, f"a text contains the character U+{ord(wrong[0]):04X}; remove it")
        return str(event.value)

    def _tag(self, event: Any) -> str:
        if event.tag in (None, "!"):
            return str(self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit))
        return str(event.tag)

    def _refusal(self, event: Any, message: str) -> InvalidUsage:
        return InvalidUsage(f"{self._path}:{self._line(event)}: {message}")

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + 1

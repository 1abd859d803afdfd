"""A YAML file as plain values, with the line each of them stands on. Keys written twice are refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tidemark.errors import InvalidUsage

Loc = tuple[str | int, ...]
"""Where a value stands: the keys and list positions that lead to it."""

MAX_BYTES = 2**20


@dataclass(frozen=True)
class Document:
    """The content of a file, and the line (from 1) of every key and list element in it."""

    path: str
    content: Any
    lines: dict[Loc, int] = field(default_factory=dict)

    def line(self, loc: Loc) -> int:
        """The line of what stands at `loc`, or of the nearest thing around it that is there."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)


def read(path: str | Path) -> Document:
    """Read one YAML document. Raises InvalidUsage for what is not there, is not YAML, or names a key twice."""
    text = _text(path)
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Loc, int] = {}
        _walk(_Reading(str(path), loader, lines), node, ())
        content = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InvalidUsage(f"{path}:{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise InvalidUsage(f"{path}:1: not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise InvalidUsage(f"{path}:1: nested too deeply") from None
    finally:
        loader.dispose()
    return Document(str(path), content, lines)


def _text(path: str | Path) -> str:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InvalidUsage(f"{path}: there is no such file") from None
    except OSError as error:
        raise InvalidUsage(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise InvalidUsage(f"{path}: has {len(data)} bytes; a collection file is smaller than {MAX_BYTES}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidUsage(f"{path}:{line}: not UTF-8 text") from None


@dataclass(frozen=True)
class _Reading:
    path: str
    loader: yaml.SafeLoader
    lines: dict[Loc, int]

    def refusal(self, node: yaml.Node, message: str) -> InvalidUsage:
        return InvalidUsage(f"{self.path}:{node.start_mark.line + 1}: {message}")


def _walk(reading: _Reading, node: yaml.Node | None, loc: Loc, above: frozenset[int] = frozenset()) -> None:
    """Note the lines of a node and all below it, and refuse what YAML allows and a collection file does not."""
    if node is None:
        return
    reading.lines.setdefault(loc, node.start_mark.line + 1)
    if id(node) in above:
        raise reading.refusal(node, "an alias refers to something around itself")
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise reading.refusal(key, "a field name must be plain text")
            if key.value in seen:
                raise reading.refusal(key, f"field {key.value!r} is written twice")
            seen.add(key.value)
            reading.lines[(*loc, key.value)] = key.start_mark.line + 1
            _walk(reading, value, (*loc, key.value), above | {id(node)})
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            _walk(reading, value, (*loc, at), above | {id(node)})
    else:
        try:
            reading.loader.construct_object(node)
        except ValueError as error:
            raise reading.refusal(node, f"{node.value!r} is not a value: {error}") from None

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
        _walk(str(path), node, (), lines, set())
        content = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InvalidUsage(f"{path}:{line}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise InvalidUsage(f"{path}:1: not YAML: {str(error).splitlines()[0]}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidUsage(f"{path}:1: not a value: {error}") from None
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


def _walk(path: str, node: yaml.Node | None, loc: Loc, lines: dict[Loc, int], above: set[int]) -> None:
    if node is None:
        return
    lines.setdefault(loc, node.start_mark.line + 1)
    if id(node) in above:
        raise InvalidUsage(f"{path}:{node.start_mark.line + 1}: an alias refers to something around itself")
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise InvalidUsage(f"{path}:{line}: a field name must be plain text")
            if key.value in seen:
                raise InvalidUsage(f"{path}:{line}: field {key.value!r} is written twice")
            seen.add(key.value)
            lines[(*loc, key.value)] = line
            _walk(path, value, (*loc, key.value), lines, above | {id(node)})
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            _walk(path, value, (*loc, at), lines, above | {id(node)})

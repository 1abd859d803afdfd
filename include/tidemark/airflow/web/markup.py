"""Markup of the pages. Everything that comes from outside is escaped in one place, `tag`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_EMPTY = ("input",)
"""Elements that have no end."""


class Markup(str):
    """Text that is HTML already."""


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element; children and attributes are escaped unless they are Markup. `class_` is the class."""
    inside = "".join(child if isinstance(child, Markup) else escape(str(child)) for child in children)
    pairs = "".join(f' {key.rstrip("_")}="{escape(str(value))}"' for key, value in attributes.items())
    return Markup(f"<{name}{pairs}>" if name in _EMPTY else f"<{name}{pairs}>{inside}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def with_commands(text: str) -> Markup:
    """Text in which commands are between backticks."""
    pieces = text.split("`")
    return joined(tag("code", piece) if at % 2 else piece for at, piece in enumerate(pieces))

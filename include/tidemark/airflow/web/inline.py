"""A picture that matplotlib drew as a part of a page: what draws, and nothing that the page's policy would not let in.

The policy allows one style sheet and no style of an element, so what matplotlib says in styles is said in attributes
of SVG. The sheet goes before these: by the colours of the picture it gives those of the page, dark or light.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from tidemark.airflow.web.markup import Markup, tag

STYLE = """
.picture svg { width: 100%; min-width: 46rem; height: auto; stroke-linejoin: round }
.picture text { fill: var(--text); font-family: system-ui, sans-serif }
.picture [fill="#ffffff"] { fill: none } .picture [stroke="#ffffff"] { stroke: var(--card) }
.picture [stroke="#000000"] { stroke: var(--quiet) }
.picture [fill="#3b6ea5"] { fill: var(--trace) } .picture [stroke="#3b6ea5"] { stroke: var(--trace) }
.picture [fill="#9bb8d3"] { fill: var(--open) } .picture [stroke="#9bb8d3"] { stroke: var(--open) }
.picture [fill="#d9782d"] { fill: var(--marked) } .picture [stroke="#d9782d"] { stroke: var(--marked) }
"""
"""Of the one sheet that pages have. The colours are those of api/picture.py."""

_ELEMENTS = frozenset(("svg", "g", "defs", "path", "rect", "use", "text", "tspan", "clipPath"))
_PLACES = frozenset(("x", "y", "width", "height", "d", "transform", "viewBox"))
_PAINT = frozenset(
    (
        *("fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-linejoin", "stroke-linecap"),
        *("stroke-dasharray", "stroke-dashoffset", "stroke-miterlimit", "opacity", "font-size", "text-anchor"),
    )
)
_NAMES = {
    "id": re.compile(r"[\w.-]+"),
    "href": re.compile(r"#[\w.-]+"),
    "clip-path": re.compile(r"url\(#[\w.-]+\)"),
}
"""What belongs to the picture itself."""


def inline(svg: bytes, title: str) -> Markup:
    """An SVG of matplotlib's as an element of a page."""
    root = ElementTree.fromstring(svg)
    drawn = (_element(child) for child in root if _local(child.tag) in _ELEMENTS)
    return tag("svg", tag("title", title), *drawn, role="img", **dict(_attributes(root)))


def _element(one: ElementTree.Element, *, painted: bool = True) -> Markup:
    """What is used several times is painted where it is used: the sheet does not reach into it there."""
    name = _local(one.tag)
    said = [one.text] if one.text and name in ("text", "tspan") else []
    inside = painted and name != "defs"
    children = (_element(child, painted=inside) for child in one if _local(child.tag) in _ELEMENTS)
    return tag(name, *said, *children, **dict(_attributes(one, painted=painted)))


def _attributes(one: ElementTree.Element, *, painted: bool = True) -> Iterator[tuple[str, str]]:
    for name, value in one.items():
        of = _local(name)
        if of == "style":
            yield from _paint(value) if painted else ()
        elif of in _PLACES or (of in _NAMES and _NAMES[of].fullmatch(value)):
            yield of, value


def _paint(style: str) -> Iterator[tuple[str, str]]:
    for said in style.split(";"):
        name, _, value = said.partition(":")
        if name.strip() in _PAINT:
            yield name.strip(), value.strip()


def _local(name: str) -> str:
    """The name without its namespace."""
    return name.rpartition("}")[2]

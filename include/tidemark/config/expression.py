"""What may be between {{ and }} of a path template, evaluated: variables, constants, and a few things done to them.

Everything is small: no value is longer than MAX_VALUE characters at any moment, and nothing is repeated or called but
what is named here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from jinja2 import nodes

from tidemark.config.nearest import nearest, similar

VARIABLES = (
    "landing",
    "ds",
    "ds_nodash",
    "ts",
    "hour",
    "data_interval_start",
    "data_interval_end",
    "lower",
    "upper",
)
MAX_VALUE = 4096
"""Characters: the longest path a system knows."""
MAX_DEPTH = 20
_NUMBERS = ("year", "month", "day", "hour", "minute", "second", "microsecond")
_FORMAT = re.compile(r"(?:[^%]|%-?[aAbBdDFGHIjmMpSTuUVwWyYzZ%])*")
"""What strftime is given: a width, which the platform would pad to whatever it says, is none of these."""

Value = str | int | datetime


class Refused(Exception):
    """An expression that is not allowed, or fails; the message says why."""


def value_of(node: nodes.Node, variables: Mapping[str, Value], depth: int = 0) -> Value:
    """The value of an expression. Raises Refused."""
    if depth > MAX_DEPTH:
        raise Refused(f"an expression is nested deeper than {MAX_DEPTH}")
    match node:
        case nodes.TemplateData(data=text):
            return str(text)
        case nodes.Const(value=str() | int() as constant) if not isinstance(constant, bool):
            return _bounded(constant) if isinstance(constant, str) else constant
        case nodes.Name(name=name):
            if name not in variables:
                near = f"; did you mean {like!r}?" if (like := similar(name, VARIABLES)) else ""
                raise Refused(f"{name!r} is undefined; the variables are {', '.join(VARIABLES)}{near}")
            return variables[name]
        case nodes.Getattr(node=of, attr=name):
            return _attribute(value_of(of, variables, depth + 1), name)
        case nodes.Getitem(node=of, arg=nodes.Slice(start=start, stop=stop, step=None)):
            return _slice(value_of(of, variables, depth + 1), _index(start), _index(stop))
        case nodes.Call(node=nodes.Getattr(node=of, attr=name), kwargs=[], dyn_args=None, dyn_kwargs=None):
            arguments = [_constant(argument) for argument in node.args]
            return _called(value_of(of, variables, depth + 1), name, arguments)
        case nodes.Filter(node=nodes.Expr() as of, name=name, kwargs=[], dyn_args=None, dyn_kwargs=None):
            arguments = [_constant(argument) for argument in node.args]
            return _filtered(value_of(of, variables, depth + 1), name, arguments)
    raise Refused(f"{_KINDS.get(type(node).__name__, type(node).__name__.lower())} is not allowed")


def text_of(value: Value) -> str:
    """A value as it is written in a path."""
    return str(value)


_KINDS = {
    "Mul": "arithmetic",
    "Add": "arithmetic",
    "Sub": "arithmetic",
    "Div": "arithmetic",
    "FloorDiv": "arithmetic",
    "Mod": "arithmetic",
    "Pow": "arithmetic",
    "Neg": "arithmetic",
    "Call": "a call",
    "CondExpr": "if",
    "Getitem": "an index that is no slice between constants",
    "Concat": "~",
    "Filter": "a filter with such arguments",
}


def _bounded(text: str) -> str:
    if len(text) > MAX_VALUE:
        raise Refused(f"a value has more than {MAX_VALUE} characters")
    return text


def _constant(node: nodes.Node) -> str:
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return _bounded(node.value)
    raise Refused("an argument must be a text in quotes")


def _index(node: nodes.Node | None) -> int | None:
    if node is None:
        return None
    sign = 1
    if isinstance(node, nodes.Neg):
        sign, node = -1, node.node
    if isinstance(node, nodes.Const) and isinstance(node.value, int):
        return sign * node.value
    raise Refused("the bounds of a slice must be whole numbers")


def _slice(value: Value, start: int | None, stop: int | None) -> str:
    if not isinstance(value, str):
        raise Refused("only a text has slices")
    return value[start:stop]


def _attribute(value: Value, name: str) -> int:
    if isinstance(value, datetime) and name in _NUMBERS:
        return int(getattr(value, name))
    raise Refused(_no_such("attribute", name, value, (*_NUMBERS, *_METHODS)))


def _called(value: Value, name: str, arguments: list[str]) -> str:
    if not isinstance(value, datetime) or name not in _METHODS:
        raise Refused(_no_such("method", name, value, tuple(_METHODS)))
    count, method = _METHODS[name]
    if len(arguments) != count:
        raise Refused(f"{name} takes {count} arguments, not {len(arguments)}")
    return method(value, *arguments)


def _filtered(value: Value, name: str, arguments: list[str]) -> str:
    if name not in _FILTERS:
        near = nearest(name, tuple(_FILTERS))
        raise Refused(f"there is no filter {name!r}{near}")
    of, count, function = _FILTERS[name]
    if len(arguments) != count:
        raise Refused(f"filter {name} takes {count} arguments, not {len(arguments)}")
    if of is datetime and not isinstance(value, datetime):
        raise Refused(f"filter {name} is for data_interval_start and data_interval_end")
    return function(value if of is datetime else text_of(value), *arguments)


def _no_such(what: str, name: str, value: Value, valid: tuple[str, ...]) -> str:
    if name.startswith("_"):
        return f"access to {name} is unsafe"
    if not isinstance(value, datetime):
        return f"a {'text' if isinstance(value, str) else 'number'} has no {what} {name!r} here"
    return f"a time has no {what} {name!r} here{nearest(name, valid)}"


def _formatted(value: datetime, text: str) -> str:
    if not _FORMAT.fullmatch(text):
        raise Refused(f"strftime cannot take {text!r}; write codes such as %Y, %m, %d, %H, %-d")
    return _bounded(value.strftime(text))


def _replaced(text: str, old: str, new: str) -> str:
    if len(text) + text.count(old) * (len(new) - len(old)) > MAX_VALUE:
        raise Refused(f"a value has more than {MAX_VALUE} characters")
    return text.replace(old, new)


_METHODS: Mapping[str, tuple[int, Callable[..., str]]] = {
    "strftime": (1, _formatted),
    "isoformat": (0, datetime.isoformat),
}
_FILTERS: Mapping[str, tuple[type, int, Callable[..., str]]] = {
    "ds": (datetime, 0, lambda at: at.strftime("%Y-%m-%d")),
    "ds_nodash": (datetime, 0, lambda at: at.strftime("%Y%m%d")),
    "ts": (datetime, 0, datetime.isoformat),
    "ts_nodash": (datetime, 0, lambda at: at.strftime("%Y%m%dT%H%M%S")),
    "lower": (str, 0, str.lower),
    "upper": (str, 0, str.upper),
    "replace": (str, 2, _replaced),
}

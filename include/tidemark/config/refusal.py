"""What is wrong about a collection file, in one line of ours: path, line, field, the nearest valid name."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from tidemark.config import declaration
from tidemark.config.document import Document, Loc
from tidemark.config.nearest import nearest, similar
from tidemark.errors import InvalidUsage

LINES = 8
"""How many lines of further mistakes are named."""


def refused(
    read: Document, error: ValidationError, file: type[declaration.Common] = declaration.Declaration
) -> InvalidUsage:
    """The first of pydantic's errors as one line of ours: by line, but what is missing last, as it may be misspelt."""

    def weight(problem: Any) -> tuple[bool, int]:
        return problem["type"] == "missing", read.line(_loc(problem))

    problems = sorted(_without_misspelt(error.errors(include_url=False), file), key=weight)
    problem = problems[0]
    loc = _loc(problem)
    where = f"{read.path}:{read.line(loc)}"
    name = ".".join(str(step) for step in loc)
    more = _more([read.line(_loc(other)) for other in problems[1:]])
    if problem["type"] == "extra_forbidden":
        valid = declaration.field_names(loc[:-1], file)
        return InvalidUsage(f"{where}: unknown field {name!r}{nearest(str(loc[-1]), valid)}{more}")
    if problem["type"] == "missing":
        return InvalidUsage(f"{where}: field {name!r} is missing{more}")
    if problem["type"] == "value_error":
        return InvalidUsage(f"{where}: {name}: {problem['ctx']['error']}{more}")
    if problem["type"] in ("literal_error", "enum"):
        found = problem["input"]
        near = nearest(str(found), declaration.choices(problem))
        return InvalidUsage(f"{where}: {name}: {found!r} is not valid{near}{more}")
    found = "and there is nothing" if problem["input"] is None else f"found {problem['input']!r}"
    expected, advice = _expected(problem, declaration.field_names(loc, file))
    return InvalidUsage(f"{where}: {name}: {expected}, {found}{advice}{more}")


def _expected(problem: Any, fields: tuple[str, ...]) -> tuple[str, str]:
    """What should be where pydantic found something else, and what to write instead, in words for whoever has never
    heard of pydantic. `fields` are those of the section that is there, if one is."""
    of, found, bounds = problem["type"], problem["input"], problem.get("ctx", {})
    plain = isinstance(found, str | int | float) and not isinstance(found, bool)
    match of:
        case "model_type" | "model_attributes_type" if fields:
            return f"a mapping of {', '.join(fields)} is expected", ""
        case "model_type" | "model_attributes_type":
            return "it holds nothing", f"; write {{{problem['loc'][-1]}: {{}}}}"
        case "list_type":
            return "a list is expected", f"; write [{found}]" if plain and found != "" else ""
        case "dict_type":
            return "a mapping is expected", ""
        case "bool_type":
            return "true or false is expected", ""
        case "int_type":
            return "a whole number is expected", ""
        case "float_type":
            return "a number is expected", ""
        case "string_type":
            return "a text is expected", "; quote it" if plain else ""
        case "too_short" | "string_too_short":
            return "one or more are expected" if isinstance(found, list) else "a text is expected", ""
        case "greater_than_equal":
            return f"it must be {bounds['ge']} or more", ""
        case "less_than_equal":
            return f"it must be {bounds['le']} or less", ""
    return str(problem["msg"]).lower(), ""


def _without_misspelt(problems: list[Any], file: type[declaration.Common]) -> list[Any]:
    """The problems without the fields that are missing because they are misspelt, which is one mistake."""
    meant = set()
    for problem in problems:
        if problem["type"] == "extra_forbidden":
            *section, wrong = _loc(problem)
            meant.add((*section, similar(str(wrong), declaration.field_names(tuple(section), file))))
    return [problem for problem in problems if problem["type"] != "missing" or _loc(problem) not in meant]


def _more(lines: list[int]) -> str:
    """How many mistakes there are besides the one that is shown, and where."""
    if not lines:
        return ""
    found = sorted(set(lines))
    shown = ", ".join(str(line) for line in found[:LINES]) + (" ..." if len(found) > LINES else "")
    mistakes = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    return f" (and {mistakes} more, in line{'s' if len(found) > 1 else ''} {shown})"


def _loc(problem: Any) -> Loc:
    loc = tuple(step for step in problem["loc"] if step != "[key]")
    # `columns: {note: string}` is short for {note: {type: string}}.
    return loc[:2] if loc[:1] == ("columns",) and loc[2:] == ("type",) else loc

"""What is wrong about a collection file, in one line of ours: path, line, field, the nearest valid name."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from tidemark.config import declaration
from tidemark.config.document import Document, Loc
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage


def refused(
    read: Document, error: ValidationError, file: type[declaration.Common] = declaration.Declaration
) -> InvalidUsage:
    """The first of pydantic's errors as one line of ours: by line, but what is missing last, as it may be misspelt."""

    def weight(problem: Any) -> tuple[bool, int]:
        return problem["type"] == "missing", read.line(_loc(problem))

    problems = sorted(error.errors(include_url=False), key=weight)
    problem = problems[0]
    loc = _loc(problem)
    where = f"{read.path}:{read.line(loc)}"
    name = ".".join(str(step) for step in loc)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
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
    if problem["type"] in ("model_type", "model_attributes_type"):  # pydantic's words name a class of ours
        return InvalidUsage(f"{where}: {name}: a mapping of fields is expected, found {problem['input']!r}{more}")
    return InvalidUsage(f"{where}: {name}: {problem['msg'].lower()}, found {problem['input']!r}{more}")


def _loc(problem: Any) -> Loc:
    loc = tuple(step for step in problem["loc"] if step != "[key]")
    # `columns: {note: string}` is short for {note: {type: string}}.
    return loc[:2] if loc[:1] == ("columns",) and loc[2:] == ("type",) else loc

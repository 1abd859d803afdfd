"""Source paths: a Jinja template with an interval's variables, rendered in a sandbox.

Variables, as Airflow users know them: `landing`, `ds` (2013-01-02), `ds_nodash`, `ts` (ISO 8601), `hour` (00 to 23),
all of the interval's lower end; `data_interval_start` and `data_interval_end` (aware datetimes, UTC); `lower` and
`upper` (microseconds).
"""

from __future__ import annotations

import glob
import os
import re
from datetime import timedelta
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

from tidemark.errors import InvalidUsage
from tidemark.model.instant import EPOCH, MICROSECOND
from tidemark.model.interval import Interval

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
_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_LANDING = re.compile(r"\{\{-?\s*landing\s*-?\}\}")
_VARYING = re.compile(r"\{\{|\{%|\{#|[*?[]")


def render(path_template: str, interval: Interval, landing: str) -> str:
    """The pattern of an interval's files; `landing` is made absolute, and stands for itself even if it holds wildcards.

    Raises InvalidUsage in one line for a variable that does not exist and for anything else a template cannot do.
    """
    try:
        start, end = (EPOCH + timedelta(microseconds=at) for at in (interval.lower, interval.upper))
    except OverflowError:
        raise InvalidUsage(f"interval {interval} is beyond the year 9999: it has no date to render") from None
    variables = {
        "landing": glob.escape(_absolute(landing)),
        "ds": start.strftime("%Y-%m-%d"),
        "ds_nodash": start.strftime("%Y%m%d"),
        "ts": start.isoformat(),
        "hour": start.strftime("%H"),
        "data_interval_start": start,
        "data_interval_end": end,
        "lower": interval.lower,
        "upper": interval.upper,
    }
    try:
        rendered = _ENVIRONMENT.from_string(path_template).render(variables)
    except UndefinedError as error:
        raise InvalidUsage(f"path {path_template!r}: {error}; the variables are {', '.join(VARIABLES)}") from None
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidUsage(f"path {path_template!r} cannot be rendered: {str(error).splitlines()[0]}") from None
    if not rendered.strip() or "\n" in rendered or "\0" in rendered:
        raise InvalidUsage(f"path {path_template!r} renders to {rendered!r}, which is no path")
    return rendered


def root(path_template: str, landing: str) -> str:
    """The folder below which all of a template's files lie: what stands before the first thing that varies."""
    literal = _LANDING.sub(lambda _: "\0", path_template)
    varying = _VARYING.search(literal)
    folder = literal[: varying.start() if varying else None].rpartition("/")[0]
    return _absolute(folder.replace("\0", _absolute(landing)) or "/")


def check(path_template: str) -> None:
    """Raise InvalidUsage if a template cannot be rendered, or may leave its landing by `..`."""
    rendered = render(path_template, Interval(0, timedelta(days=1) // MICROSECOND), "/landing")
    if ".." in rendered.split("/"):
        raise InvalidUsage(f"path {path_template!r} holds .., which may leave the landing; write it without")


def _absolute(path: str) -> str:
    # Not resolved: a landing that is a link keeps its name, which is part of its files' identity.
    return path.rstrip("/") if "://" in path else os.path.abspath(Path(path).expanduser())  # noqa: PTH100

"""Source paths: a template with an interval's variables, in a little of Jinja's language.

    {{ landing }}/flights/{{ ds }}/*.parquet          {{ data_interval_start.strftime('%Y/%m/%d') }}
    {{ ds_nodash }}-{{ hour }}.csv                    {{ ds[:4] }}/{{ ds | replace('-', '/') }}

Variables, as Airflow users know them: `landing`, `ds` (2013-01-02), `ds_nodash`, `ts` (ISO 8601), `hour` (00 to 23),
all of the interval's lower end; `data_interval_start` and `data_interval_end` (aware datetimes); `lower` and `upper`
(microseconds). All but these two are by the clock of the collection's `timezone`, UTC unless it declares one. Of a
datetime: `strftime('…')`, `isoformat()`, and its numbers from `year` to `microsecond`. Of a text: a slice between two
constants. Filters: `ds`, `ds_nodash`, `ts`, `ts_nodash` of a datetime; `lower`, `upper`, `replace('…', '…')`.

Jinja parses a template and nothing of it is ever compiled or run: what it contains is evaluated here, piece by piece.
So a template has no loops, no arithmetic and no calls but these, and its time and size are bounded whatever it says.
"""

from __future__ import annotations

import glob
import os
import re
from datetime import timedelta
from functools import lru_cache

from jinja2 import Environment, TemplateError, nodes

from tidemark.config.expression import MAX_VALUE, VARIABLES, Refused, Value, text_of, value_of
from tidemark.errors import InvalidUsage
from tidemark.model.instant import MICROSECOND
from tidemark.model.interval import Interval
from tidemark.model.landed import Landed
from tidemark.model.local_time import moment_in

MAX_CHARACTERS = 1000
_ENVIRONMENT = Environment(autoescape=False)
_LANDING = re.compile(r"\{\{-?\s*landing\s*-?\}\}")
_VARIABLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def pattern_of(landed: Landed, interval: Interval, landing: str) -> str:
    """The pattern of the files of a collection's interval, as `render`, by the clock of its `timezone`."""
    return render(landed.source.path, interval.in_zone(landed.timezone), landing)


def render(path_template: str, interval: Interval, landing: str) -> str:
    """A template for an interval, by the clock of its zone.

    `landing` is made absolute, and matched literally even if it has wildcards. Raises InvalidUsage in one line for a
    variable that does not exist and for anything else a template cannot do.
    """
    try:
        start, end = (moment_in(at, interval.zone) for at in (interval.lower, interval.upper))
    except OverflowError:
        raise InvalidUsage(f"interval {interval} is beyond the year 9999: it has no date to render") from None
    variables: dict[str, Value] = {
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
    shown = repr(path_template if len(path_template) <= MAX_CHARACTERS else path_template[:60] + "…")
    if len(path_template) > MAX_CHARACTERS:
        raise InvalidUsage(f"path {shown} has {len(path_template)} characters; it may have {MAX_CHARACTERS}")
    try:
        rendered = "".join(text_of(value_of(piece, variables)) for piece in _pieces(path_template))
    except Refused as error:
        raise InvalidUsage(f"path {shown} cannot be rendered: {error}") from None
    if len(rendered) > MAX_VALUE:
        raise InvalidUsage(f"path {shown} renders to {len(rendered)} characters; a path has at most {MAX_VALUE}")
    if not rendered.strip() or "\n" in rendered or "\0" in rendered:
        raise InvalidUsage(f"path {shown} renders to {rendered!r}, which is no path")
    return rendered


def of_any_interval(path_template: str, landing: str) -> str:
    """A pattern that the files of every interval match: what varies is a wildcard."""
    return _VARIABLE.sub("*", _LANDING.sub(lambda _: glob.escape(_absolute(landing)), path_template))


def uses_landing(path_template: str) -> bool:
    """Whether a template names the landing."""
    return _LANDING.search(path_template) is not None


def check(path_template: str) -> None:
    """Raise InvalidUsage if a template cannot be rendered, or may leave its landing by `..`."""
    rendered = render(path_template, Interval(0, timedelta(days=1) // MICROSECOND), "/landing")
    if ".." in rendered.split("/"):
        raise InvalidUsage(f"path {path_template!r} holds .., which may leave the landing; write it without")


@lru_cache(maxsize=256)  # parsing takes as long as all else that an interval without new files asks for
def _pieces(path_template: str) -> tuple[nodes.Expr, ...]:
    """The texts and expressions a template is made of. Refused for anything else, and where it does not parse."""
    try:
        parsed = _ENVIRONMENT.parse(path_template)
    except TemplateError as error:
        raise Refused(str(error).splitlines()[0]) from None
    except (RecursionError, ValueError, ArithmeticError):  # ValueError: an int of thousands of digits
        raise Refused("it is too complex") from None
    pieces: list[nodes.Expr] = []
    for node in parsed.body:
        if not isinstance(node, nodes.Output):
            raise Refused(
                f"{{% {type(node).__name__.lower()} %}} is not allowed; a path may have {{{{ variables }}}} only"
            )
        pieces += node.nodes
    return tuple(pieces)


def _absolute(path: str) -> str:
    # Not resolved: a landing that is a link keeps its name, which is part of its files' identity.
    return path.rstrip("/") if "://" in path else os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111


__all__ = ["VARIABLES", "check", "of_any_interval", "pattern_of", "render", "uses_landing"]

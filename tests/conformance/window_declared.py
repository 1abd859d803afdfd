"""Rules of windows as collection files declare them; and who answers a case, where no file can declare its rule."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Derived
from tidemark.model.window.contents import Rule
from tidemark.model.window.frozen_sessions import Revival
from tidemark.model.window.kinds import Sliding

AGGREGATES = {
    "count": "count",
    "sum": {"sum": "number"},
    "min_time": {"min": "time"},
    "max_time": {"max": "time"},
    "values": {"collect": "value"},
}
"""What vectors tell of windows."""
PLACED = "key IS NOT NULL AND value IS NOT NULL"
"""Records without a key or a value are in no window."""


CALLED = {"advance": "every"}
"""What fields of the vectors, and of the model, are called in a collection file."""


OTHER_SESSIONS = {
    Revival.ALL_MERGE: "late rows revive sessions that are closed",
    Revival.OWN_IS_JUDGED: "a row is late by itself, whatever session would take it",
}
"""How sessions take late rows that collections have not."""


class LawOnly(Exception):
    """Production cannot answer, and why: the law answers alone."""


@dataclass
class Asked:
    """Who answered while a case ran: production, which may have `computed` something or only have read a file; or the
    law alone, and why."""

    production: bool = False
    computed: bool = False
    law_only: list[str] = field(default_factory=list)


_ASKED: ContextVar[Asked] = ContextVar("asked")


@contextmanager
def asked() -> Iterator[Asked]:
    """Who is asked in the block."""
    who = Asked()
    token = _ASKED.set(who)
    try:
        yield who
    finally:
        _ASKED.reset(token)


def by_production(*, computed: bool = True) -> None:
    """Production answered: it computed windows, or it only read the file that declares them."""
    if who := _ASKED.get(None):
        who.production = True
        who.computed |= computed


def by_the_law(why: str) -> None:
    """The law answered alone."""
    who = _ASKED.get(None)
    if who and why not in who.law_only:
        who.law_only.append(why)


def declared(rule: Rule, *, early: bool = False) -> Derived:
    """A collection of windows by this rule. Raises LawOnly where no collection file can declare it."""
    if rule.clamp_start_at_zero and not isinstance(rule.kind, Sliding):
        raise LawOnly("no collection file says that aligned windows do not start below 0")
    if rule.lateness is not None and rule.revival in OTHER_SESSIONS:
        raise LawOnly(f"no collection file says that {OTHER_SESSIONS[rule.revival]}")
    fields = {name: value for name, value in asdict(rule.kind).items() if name != "kind" and value is not None}
    late = str(rule.late) if rule.max_lateness is None else {"reemit": {"max_lateness": rule.max_lateness}}
    try:
        return of_file(rule.kind.kind, fields, {"grace": rule.grace, "late": late, "early": early})
    except InvalidUsage as why:
        raise LawOnly(f"a collection file refuses it: {why}") from None


def of_file(kind: str, fields: Mapping[str, Any], more: Mapping[str, Any]) -> Derived:
    """The collection whose file says these fields of a kind of windows, and more of the windows. Raises InvalidUsage
    where the file is refused."""
    section = {CALLED.get(name, name): value for name, value in fields.items()}
    windows = {"by": "key", "on": "time", "where": PLACED, kind: section, **more}
    definition = {"windows": windows, "aggregates": AGGREGATES}
    return _parsed(json.dumps({"name": "windows", "from": "rows", **definition}))


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Derived:
    with TemporaryDirectory() as folder:
        path = Path(folder, "windows.yaml")
        path.write_text(text)
        file = parse(path)
    assert isinstance(file, DerivedFile)
    return file.origin

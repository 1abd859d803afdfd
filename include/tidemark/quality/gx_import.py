"""The import of Great Expectations, without the packages that judging a pandas frame does not need.

The package imports pyspark, SQLAlchemy and boto3 where they are installed, and scipy and altair always: two of its
three CPU seconds. While this module imports it, the first three are reported as not installed, for which it is made,
and the last two are stand-ins that import the real package on the first use. A Spark frame needs all of it.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from tidemark.imports import uncollected

PACKAGE = "great_expectations"
HIDDEN = ("pyspark", "pyspark.ml", "pyspark.sql.connect", "sqlalchemy", "boto3", "botocore")
"""Modules that Great Expectations uses only where they are installed."""
LATER = ("scipy", "scipy.stats", "altair")
"""Modules that Great Expectations always imports, for four expectations and for pictures."""


def import_package(*, for_spark: bool) -> ModuleType:
    """Import Great Expectations once, with Spark's engine if it is `for_spark`.

    Where it was imported without Spark before, it is imported again: its classes are others then, and what was
    registered with it is gone. Call this from one thread at a time, and for Spark while no other thread judges.
    """
    if for_spark and is_lean(loaded := sys.modules.get(PACKAGE)):
        assert loaded is not None
        _forget()
    if PACKAGE not in sys.modules:
        with quiet():
            _import_lean() if not for_spark else importlib.import_module(PACKAGE)
    return sys.modules[PACKAGE]


def is_lean(package: ModuleType | None) -> bool:
    """Whether a package of Great Expectations was imported without Spark's engine."""
    return getattr(package, "_tidemark_lean", False)


def _import_lean() -> None:
    """Import all but what is left out; another release that needs it gets all."""
    try:
        with _left_out():
            package = importlib.import_module(PACKAGE)
    except Exception:
        _forget()
        importlib.import_module(PACKAGE)
        return
    package._tidemark_lean = True  # type: ignore[attr-defined]


def _forget() -> None:
    """Have the package imported again. Pydantic refuses a validator of the same name again, and marshmallow finds the
    first schema of a name, so their lists forget too."""
    validators = sys.modules.get("pydantic.v1.class_validators")
    known: set[str] = getattr(validators, "_FUNCS", set())
    known -= {name for name in known if name.startswith(f"{PACKAGE}.")}
    schemas: dict[str, list[type]] = getattr(sys.modules.get("marshmallow.class_registry"), "_registry", {})
    for name, classes in list(schemas.items()):
        schemas[name] = [one for one in classes if not one.__module__.startswith(f"{PACKAGE}.")]
        if not schemas[name]:
            del schemas[name]
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]


class StandIn(ModuleType):
    """A module that is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


class _Finder:
    """Reports the hidden packages as not installed, to the thread that made it only."""

    def __init__(self, hidden: Sequence[str]) -> None:
        self._hidden, self._thread = frozenset(hidden), threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if threading.get_ident() == self._thread and name in self._hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


@contextmanager
def _left_out() -> Iterator[None]:
    """HIDDEN and LATER as the module says, as far as they are not imported yet. Both end with the context: whoever
    imports one of them later gets the real one."""
    finder = _Finder([name for name in HIDDEN if name not in sys.modules])
    stand_ins = {name: _stand_in(name) for name in LATER if name not in sys.modules and find_spec(name.split(".")[0])}
    for name, module in stand_ins.items():
        parent, _, child = name.rpartition(".")
        if parent in stand_ins:
            setattr(stand_ins[parent], child, module)
    sys.modules.update(stand_ins)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _stand_in(name: str) -> StandIn:
    module = StandIn(name)
    module.__path__ = []
    return module


@contextmanager
def quiet() -> Iterator[None]:
    """Without a report to its makers, warnings about stand-ins, and the garbage collector, which is a fifth of its
    time."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    log = logging.getLogger(PACKAGE)
    log.setLevel(logging.ERROR)
    try:
        with uncollected():
            yield
    finally:
        log.setLevel(logging.WARNING)

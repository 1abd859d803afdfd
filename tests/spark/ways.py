"""The places at which a derived collection is computed. A test closes some of them, so that what comes out is of those
left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from tests.support.budget import budget
from tidemark.spark.derive import place, settings
from tidemark.spark.derive.executors import key_ranges
from tidemark.spark.derive.kinds import groups_shuffled


def refused(*_: Any) -> NoReturn:
    raise AssertionError("left to another place")


def by_queries(patch: pytest.MonkeyPatch) -> None:
    """Nothing is computed without a query."""
    patch.setattr(place, "PLACES", ())


def interpreted(patch: pytest.MonkeyPatch) -> None:
    """Queries are not compiled, which takes longer than they do over so few rows; in `make test-deep` they are. For
    those that others are compared with: compiled ones are what tests of queries look at."""
    not_compiled = {name: value for name, value in settings.AS_IT_IS.items() if "codegen" in name}
    for name, value in budget(ci=not_compiled, deep={}).items():
        patch.setitem(settings.OWN_SETTINGS, name, value)


@contextmanager
def by_executors(at_once: int = 2**17, *, ranges: bool = True) -> Iterator[None]:
    """Neither the driver nor queries compute anything; executors look at so many rows together. Without `ranges` rows
    always go through a shuffle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, "PLACES", (place.key_ranges, place.shuffle) if ranges else (place.shuffle,))
        patch.setattr(place, "by_queries", refused)
        for module in (key_ranges, groups_shuffled):
            patch.setattr(module, "AT_ONCE", at_once)
        yield


def queried(patch: pytest.MonkeyPatch) -> list[str]:
    """The collections that are computed by queries, from now on."""
    asked, queries = list[str](), place.by_queries
    patch.setattr(place, "by_queries", lambda views: asked.append(views.computation.name) or queries(views))
    return asked


def not_here(patch: pytest.MonkeyPatch) -> None:
    """This process builds nothing itself."""
    patch.setattr(place, "PLACES", tuple(one for one in place.PLACES if one is not place.here))

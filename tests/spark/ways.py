"""The ways in which a derived collection is computed: by the driver, by executors without a query, by queries. A test
closes some of them, so that what comes out is of those left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from tidemark.spark.derive import by_key, computer
from tidemark.spark.derive.plain import apart, groups_shuffled, rows
from tidemark.spark.derive.windows import lying

BUILT_HERE = ("sliding_built_plainly", "groups_built_plainly", "sessions_built_plainly")
APART = ("sliding_apart", "groups_apart", "sessions_apart")


def refused(*_: Any) -> NoReturn:
    raise AssertionError("left to another way")


def by_queries(patch: pytest.MonkeyPatch) -> None:
    """Nothing is computed without a query."""
    for name in (*BUILT_HERE, *APART):
        patch.setattr(computer, name, lambda views: None)
    for module in (by_key, lying):
        patch.setattr(module, "learned_here", lambda *_: None)


@contextmanager
def by_executors(at_once: int = 2**17) -> Iterator[None]:
    """Neither the driver nor queries compute anything; executors look at so many rows together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "LITTLE_BYTES", -1)
        for module in (apart, groups_shuffled):
            patch.setattr(module, "AT_ONCE", at_once)
        for module in (by_key, lying):
            patch.setattr(module, "learned_here", lambda *_: None)
            patch.setattr(module, "learned", refused)
        patch.setattr(computer, "whole", refused)
        patch.setattr(computer, "written_here", refused)
        yield

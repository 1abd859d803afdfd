"""How far searches go: a budget for every change (`make test`), and the whole (a part of `make test-deep`).

A search is a test without a natural end: long walks of state machines, faults of every single call on a slow store,
processes that contend, random definitions. The short search repeats the same seeds, so that what it shows does not
depend on luck; the long one goes on where the short one stops. A file that asks here is in tests/deep/parts.toml.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

DEEP = os.environ.get("TIDEMARK_TEST_DEPTH", "") == "deep"


def budget(*, ci: T, deep: T) -> T:
    """`ci`, or `deep` where TIDEMARK_TEST_DEPTH=deep, as `make test-deep` sets it."""
    return deep if DEEP else ci


def examples(deep: int) -> settings:
    """For a property: so many examples where tests search deep, a quarter of them for every change."""
    return settings(deadline=None, max_examples=budget(ci=deep // 4, deep=deep))


laws = settings(deadline=None, max_examples=budget(ci=25, deep=50))
"""For the properties of kernels, an example of which writes and reads parts."""

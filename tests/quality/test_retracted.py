"""Owners' expectations are about what is said: of facts that are retracted none is asked."""

from __future__ import annotations

import pytest

from tests.pure.arrow.samples import KEYED, of_facts, write
from tidemark.model.fact import Fact
from tidemark.quality.rows import pandas_rows, rows_at
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.quality


def test_rows_that_are_retracted_are_no_rows_to_judge() -> None:
    store = MemoryStore()
    said, gone = (
        write(store, KEYED, of_facts(KEYED, [Fact((k,), (v, 0.5), 1, 1, (None, "f", k))]), facts=True, retracted=back)
        for k, v, back in ((1, "said", False), (2, "gone", True))
    )
    frame = pandas_rows(store, (*gone, *said), KEYED)
    assert list(zip(frame["number"], frame["word"], strict=True)) == [(1, "said")]
    assert [row["word"] for row in rows_at(store, (*gone, *said), [0], KEYED)] == ["said"]
    assert pandas_rows(store, gone, KEYED).empty

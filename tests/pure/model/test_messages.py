"""What a message tells of data is bounded, and an error arrives with its kind whatever it is about."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.decode.content import BadFile
from tidemark.errors import (
    MAX_LINE,
    MAX_MESSAGE,
    MAX_REASON,
    RETRY_SAFE,
    Contention,
    Corruption,
    GateFailed,
    InvalidUsage,
    NotReady,
    TidemarkError,
    Unavailable,
    listed,
    plain_line,
    shortened,
)
from tidemark.jobs.app import result_line
from tidemark.jobs.queries.verify import Unsound
from tidemark.storage.verify.collection import Finding

pytestmark = pytest.mark.pure
TEXTS = st.text(st.characters(codec=None), max_size=30) | st.sampled_from(["x" * 10**5, "😀" * 10**5, "\udcff" * 10**4])


def test_what_is_long_says_how_much_more_there_is_and_keeps_its_end() -> None:
    assert listed(f"c{i}" for i in range(1_000_000)).endswith("c18, c19 … and 999,980 more")
    message = shortened("column x is missing; " + "y" * 9_000_000 + "; mend the file and run again")
    assert message.startswith("column x is missing; yyy")
    assert " … and 8,996,0" in message
    assert message.endswith("; mend the file and run again")


@given(text=TEXTS, most=st.integers(100, 2000))
def test_any_text_is_bounded_and_can_be_written(text: str, most: int) -> None:
    for bounded in (shortened(text, most), plain_line(text, most)):
        assert len(bounded) <= most
        bounded.encode()
        assert shortened(bounded, most) == bounded
    assert plain_line(text, most).isprintable()


@pytest.mark.parametrize("kind", [InvalidUsage, GateFailed, Corruption, Contention, NotReady, Unavailable])
def test_an_error_is_bounded_and_crosses_processes_as_it_is(kind: type[TidemarkError]) -> None:
    error = kind("column x is missing; the file has " + ", ".join(map(str, range(10**6))))
    assert len(str(error)) <= MAX_MESSAGE
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.kind) == (kind, str(error), kind.__name__)


def test_what_is_kept_of_a_file_or_a_finding_is_bounded_and_one_line() -> None:
    many = "names\n" * 10**6 + "\udcff"
    for kept in (BadFile("p", many).reason, Finding("rule", many).detail):
        assert len(kept) <= MAX_REASON
        assert "\n" not in kept
        kept.encode()


RESULTS: list[dict[str, Any]] = [
    {"step": "ingest", "error": {"kind": "GateFailed", "message": "x" * 10**7}},
    {"step": "audit", "error": {"kind": "Unsound", "message": "m"}, "findings": [{"detail": "😀" * 900}] * 10**4},
    {"step": "x", "error": {"kind": "Unsound", "message": "😀" * 4000}, "deep": [[["y" * 900] * 99] * 99] * 9},
    {"step": "x", "outcome": "applied", "collection": "c", "names": {f"n{i}" * 9: i for i in range(10**5)}},
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_always_arrives_with_its_outcome_and_its_kind(result: dict[str, Any]) -> None:
    line = result_line(result)
    assert len(line) <= MAX_LINE
    seen = json.loads(line)
    assert (seen["step"], seen.get("outcome")) == (result["step"], result.get("outcome"))
    assert seen.get("error", {}).get("kind") == result.get("error", {}).get("kind")


def test_storage_and_memory_that_fail_are_tried_again() -> None:
    assert Unavailable.exit_code == RETRY_SAFE
    assert isinstance(Unsound("x" * 10**6, {}), Corruption)

"""Running the steps of a case, one after the other, upon a subject whose operations have the vectors' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.codes import check_error
from tidemark.errors import Corruption

Step = dict[str, Any]


def run_each(steps: list[Step], run_one: Callable[[Step], None]) -> None:
    """Raise, naming the step, where one does not do what is expected of it."""
    for number, step in enumerate(steps, start=1):
        try:
            run_one(step)
        except Exception as error:
            raise AssertionError(f"step {number} {step['op']}: {type(error).__name__}: {error}") from error


def perform(subject: object, name: str, step: Step, expected: dict[str, Any], check: Callable[[Any], None]) -> None:
    """Let the subject do a step; what it gives is checked by `check`, and an error by what is expected of it."""
    operation: Callable[[Step], Any] | None = getattr(subject, name, None)
    assert operation is not None, "operation is not supported"
    try:
        found = operation(step)
    except Corruption as error:
        if "error" not in expected:
            raise
        check_error(expected["error"], error)
        return
    assert "error" not in expected, f"expected error {expected['error']['code']}, it succeeded"
    check(found)

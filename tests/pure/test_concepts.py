"""The example of docs/concepts.md does what it says."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts.md"


def test_the_example_prints_what_it_shows() -> None:
    failed, tried = doctest.testfile(str(CONCEPTS), module_relative=False)
    assert tried >= 8
    assert failed == 0

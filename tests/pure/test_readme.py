"""The README's example does what it says."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

README = Path(__file__).parents[2] / "README.md"


def test_the_example_of_the_readme_prints_what_it_shows() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried >= 8
    assert failed == 0

"""Transitions and the horizon, as text: tests/pure/model/cases."""

from __future__ import annotations

from pathlib import Path

import pytest

import datadriven
from support.stage import Stage

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text(path: Path):
    datadriven.run(path, Stage())

"""What the how-to for a new window kind shows is a kind, and the places it names are there."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from tidemark.model.window.kind import Aligned

pytestmark = pytest.mark.pure

PROJECT = Path(__file__).resolve().parents[4]
HOW_TO = PROJECT / "docs" / "how-to" / "add-a-window-kind.md"


def test_its_example_has_what_every_kind_has() -> None:
    shown: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL):
        exec(compile(block, str(HOW_TO), "exec", dont_inherit=True), shown)
    shift = shown["Shift"](8, 2)
    assert (shift.kind, shift.inclusive) == ("shift", False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        shift.size = 9
    for kind in get_args(Aligned):
        assert kind.inclusive == shift.inclusive
        assert "kind" in {field.name for field in dataclasses.fields(kind)}


def test_every_place_it_names_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+[\w.]*)`", HOW_TO.read_text()))
    package = PROJECT / "include" / "tidemark"
    assert len(named) >= 15
    assert [name for name in sorted(named) if not (PROJECT / name).exists() and not (package / name).exists()] == []


def test_every_function_it_names_is_where_it_says() -> None:
    for file, names in {
        "model/window/bounds.py": ("windows_at", "earliest_after", "earliest_from"),
        "arrow/kernels/windows/placed.py": ("_bounds", "first_after"),
        "config/windows.py": ("KINDS", "SECTIONS"),
    }.items():
        assert f"`{file}`" in HOW_TO.read_text()
        text = (PROJECT / "include" / "tidemark" / file).read_text()
        for name in names:
            assert f"`{name}`" in HOW_TO.read_text()
            assert re.search(rf"^(def )?{name}\b", text, re.MULTILINE), (file, name)

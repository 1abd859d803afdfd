"""The kind that the how-to for a new one shows is one: its kernel computes its law, which is what it is by hand; a file
may say it; and the places that the page names are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidemark.config.windows_kinds import section_of
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure

PROJECT = Path(__file__).resolve().parents[4]
HOW_TO = PROJECT / "docs" / "how-to" / "add-a-window-kind.md"
HOUR = 3_600_000_000
DAY = 24 * HOUR


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL):
        exec(compile(block, str(HOW_TO), "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize(("size", "shifts"), [(8 * HOUR, 2), (8 * HOUR, 3), (7 * HOUR, 3), (DAY, 1), (5, 1)])
def test_its_kernel_computes_its_law(shown: dict[str, Any], size: int, shifts: int) -> None:
    kind = shown["Shift"](size, shifts)
    windows = [(day * DAY + n * size, day * DAY + (n + 1) * size) for day in range(-4, 5) for n in range(shifts)]
    bounds = [bound for window in windows for bound in window if -3 * DAY < bound < 3 * DAY]
    instants = sorted({*range(-3 * DAY, 3 * DAY, HOUR // 2), *bounds, *(at - 1 for at in bounds)})
    holding = [(number, *one) for number, at in enumerate(instants) for one in windows if one[0] <= at < one[1]]
    assert [(number, *one) for number, at in enumerate(instants) for one in kind.windows_at(at)] == holding
    kernel = shown["ShiftKernel"](kind)
    assert list(zip(*(column.tolist() for column in kernel.windows_at(np.array(instants))), strict=True)) == holding
    following = [min(one for one in windows if one[1] > at) for at in instants]
    assert [kind.earliest_after(at) for at in instants] == following
    starts, ends = kernel.earliest_after(np.array(instants))
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == following
    before = [max(end for _, end in windows if end < window[1]) for window in following]
    assert [kind.earliest_from(window) for window in map(kind.earliest_after, instants)] == before


def test_a_file_may_say_it(shown: dict[str, Any]) -> None:
    section = section_of(shown["Shift"])
    assert section.kind(section.section.model_validate({"size": "8h", "shifts": 2})) == shown["Shift"](8 * HOUR, 2)
    assert section.lengths == ("size",)
    with pytest.raises(InvalidUsage, match="a day has no 4 shifts of 8h"):
        shown["Shift"](8 * HOUR, 4)


def test_every_place_it_names_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+[\w.]*)`", HOW_TO.read_text()))
    package = PROJECT / "include" / "tidemark"
    assert len(named) >= 30
    assert [name for name in sorted(named) if not (PROJECT / name).exists() and not (package / name).exists()] == []

"""How a refusal shows what was wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

LONGEST = 60


def shown(value: Any) -> str:
    """A wrong value as a message shows it: files may hold anything, also a megabyte of it."""
    try:
        text = repr(value)
    except ValueError:
        text = "an integer of thousands of digits"
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def nearest(name: object, known: Iterable[str]) -> str:
    """The end of a refusal: the nearest of the names that are known, else all of them."""
    names = sorted(known)
    close = get_close_matches(str(name)[:LONGEST], names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(names)}"

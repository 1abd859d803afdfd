"""Which windows a page shows, as its address says it and as its links say it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from tidemark.airflow.web.markup import Markup, tag
from tidemark.errors import InvalidUsage
from tidemark.model.key import Key, key_scalar, plain_scalar

LEAST, MOST = -(2**63), 2**63 - 1
"""Of numbers in an address."""
LASTS = (50, 100, 200, 500)
"""How many windows the page offers to show."""
USUAL = 100
TOKEN = 500
"""Characters of a key in an address, at most."""


@dataclass(frozen=True)
class Choice:
    """What the page's address asks for, as text; empty or None: whatever is usual. Keys are JSON lists of plain
    scalars, `lower` and `upper` where the windows begin that are shown, `above` and `below` between which keys are
    listed."""

    value: str = ""
    key: str = ""
    last: int = USUAL
    lower: int | None = None
    upper: int | None = None
    above: str = ""
    below: str = ""

    def link(self, text: str, **other: Any) -> Markup:
        """A link to the page with another choice; what is chosen already is no link."""
        choice = replace(self, **other)
        if choice == self:
            return tag("b", text)
        asked = {
            **{"value": choice.value, "key": choice.key, "last": choice.last if choice.last != USUAL else ""},
            **{"from": choice.lower, "to": choice.upper, "above": choice.above, "below": choice.below},
        }
        return tag("a", text, href="?" + urlencode({name: v for name, v in asked.items() if v not in ("", None)}))


def key_of(text: str) -> Key | None:
    """A key from the page's address; None for none. InvalidUsage for what is no key."""
    if not text:
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(one is None or isinstance(one, str | int) for one in values):
        raise InvalidUsage("a key is a JSON list of texts, whole numbers, truths and nulls")
    return tuple(map(key_scalar, values))


def token_of(key: Key | None) -> str:
    """A key as the page's address has it; empty for none."""
    if key is None:
        return ""
    return json.dumps([plain_scalar(one) for one in key], separators=(",", ":"), ensure_ascii=False)

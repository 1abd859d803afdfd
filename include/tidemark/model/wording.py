"""How changes count things for people."""

from __future__ import annotations

SHORT_ID = 12
"""Characters of a batch's id shown to people; commands take any unambiguous beginning."""


def counted(count: int, what: str, several: str = "") -> str:
    """`1 row`, `2,000 rows`; `several` where that is not the word and an s."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {several or what + 's'}"

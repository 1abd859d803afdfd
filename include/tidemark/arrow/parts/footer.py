"""The entry of a part's Parquet footer that says of its chunks what Parquet does not: of which timelines they ascend,
and where on each those rows are that have a value in a column with nulls (docs/format.md, Parts).

It is small, and decoded only by who asks for it. What was written before format 3 has none.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from tidemark.errors import Corruption
from tidemark.model.chunk.footer import Present, TimelineChunks

ENTRY = b"tidemark.chunks"
"""The key of the entry."""
SMALL = 512
"""Bytes of JSON above which the entry is compressed."""


def encoded(timelines: Sequence[TimelineChunks]) -> dict[str, str]:
    """The entry as what Parquet keeps in a footer; nothing where nothing is to be said."""
    if not timelines:
        return {}
    data = json.dumps({"timelines": [_plain(each) for each in timelines]}, separators=(",", ":")).encode()
    text = data if len(data) <= SMALL else b64encode(zlib.compress(data, 6))
    return {ENTRY.decode(): text.decode()}


def decoded(metadata: dict[bytes, bytes] | None, groups: int, name: str) -> dict[int, TimelineChunks]:
    """What the footer of the part `name`, of so many row groups, says of each timeline, by its id. Corruption where the
    entry is no such thing."""
    text = (metadata or {}).get(ENTRY)
    if text is None:
        return {}
    try:
        data = text if text.startswith(b"{") else zlib.decompress(b64decode(text, validate=True))
        timelines = [_timeline(each, groups) for each in json.loads(data)["timelines"]]
    except (ValueError, LookupError, TypeError, AttributeError, zlib.error) as error:
        raise Corruption(f"{name} has a footer whose entry {ENTRY.decode()} does not decode: {error}") from None
    return {each.id: each for each in timelines}


def _plain(of: TimelineChunks) -> dict[str, Any]:
    present = {
        str(number): [None if each is None else [each.first, each.last, each.rows] for each in chunks]
        for number, chunks in of.present.items()
    }
    return {"id": of.id, "ascends": "".join("1" if each else "0" for each in of.ascends), "present": present}


def _timeline(plain: dict[str, Any], groups: int) -> TimelineChunks:
    ascends = tuple(each == "1" for each in plain["ascends"])
    present = {
        int(number): tuple(None if each is None else Present(*each) for each in chunks)
        for number, chunks in plain["present"].items()
    }
    if any(len(each) != groups for each in (ascends, *present.values())):
        raise ValueError(f"it is not of {groups} row groups")
    return TimelineChunks(int(plain["id"]), ascends, present)

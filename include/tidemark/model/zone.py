"""Time zones by their names in the tz database."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from tidemark.errors import InvalidUsage

_OF_MACHINES = re.compile("localtime|posixrules|Factory|(posix|right)/.*")
"""Files beside the zones, which Python finds where a machine has them, and which no JVM knows: the machine's own zone,
one that is not set, and all zones once more with and without leap seconds."""


@lru_cache(maxsize=64)
def zone_named(name: str) -> ZoneInfo:
    """A zone of the tz database. Raises InvalidUsage for another name."""
    try:
        if _OF_MACHINES.fullmatch(name):
            raise ZoneInfoNotFoundError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = get_close_matches(name, available_timezones(), n=1, cutoff=0.5)
        raise InvalidUsage(
            f"time zone {name!r} is not known; write one of the tz database, like {close[0] if close else 'UTC'}"
        ) from None

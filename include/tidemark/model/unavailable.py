"""What stands in messages for a value that the database did not log, as it did not change."""

from __future__ import annotations

from tidemark.errors import InvalidUsage

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium writes, unless its `unavailable.value.placeholder` says another text."""
_HEX = "hex:"


def placeholder(setting: str) -> str:
    """The text that a connector writes with this setting. Raises InvalidUsage."""
    if not setting.startswith(_HEX):
        return setting
    try:
        text = bytes.fromhex(setting.removeprefix(_HEX)).decode()
    except ValueError:
        raise InvalidUsage(f"unavailable is {setting!r}; behind hex: there are bytes of UTF-8, as hex:4e2f41") from None
    if not text:
        raise InvalidUsage(f"unavailable is {setting!r}, which has no bytes; remove it for {UNAVAILABLE}")
    return text

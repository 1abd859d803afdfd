"""Bytes as text: base64 (RFC 4648, section 4), the one text that a value has, and no other.

Refused are what lenient readers take: the alphabet of URLs, a line break, missing padding, bits behind the last byte.
"""

from __future__ import annotations

from base64 import b64decode, b64encode


class NotBase64(ValueError):
    """A text that is no base64."""


def decoded(text: str) -> bytes:
    """The bytes. Raises NotBase64."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        raise NotBase64("no base64 (A-Z, a-z, 0-9, +, /, filled up with = to a multiple of four)") from None
    if encoded(data) != text:
        raise NotBase64("base64 with bits behind its last byte")
    return data


def encoded(data: bytes) -> str:
    """The text."""
    return b64encode(data).decode()

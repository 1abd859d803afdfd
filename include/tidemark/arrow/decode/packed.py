"""Compressed source files as streams of what they contain: a bounded number of bytes in memory, whatever comes out."""

from __future__ import annotations

import bz2
import contextlib
import lzma
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_SKIPPABLE = rb"[\x50-\x5f]\x2a\x4d\x18"
_BEGINS = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|" + _SKIPPABLE, re.DOTALL),
    "bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18|" + _SKIPPABLE, re.DOTALL),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}
BEGINNING = 16
"""Bytes by which a compression is known."""
_READ_BYTES = 2**18
_PIECE_BYTES = 2**12
XZ_BYTES = 128 * 2**20
"""Memory of a dictionary of XZ; its highest preset needs half of it."""
_UNPACKERS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_BYTES),
}
"""Compressions that the standard library reads."""


def packed_with(head: bytes) -> str | None:
    """The compression of a file that begins so; None if it plainly has none."""
    return next((name for name, begins in _BEGINS.items() if begins.match(head)), None)


def is_packed_with(compression: str, head: bytes) -> bool:
    """Whether a file that begins so has this compression."""
    return _BEGINS[compression].match(head) is not None


def beginning(packed: pa.NativeFile, compression: str, most: int) -> tuple[bytes, int]:
    """The text of the beginning of a file, as far as it can be unpacked, at most so many bytes of it.

    Returns:
        The text, and of how many bytes of the file it is, about.
    """
    text = b""
    with contextlib.suppress(EOFError), Unpacked(packed, compression, EOFError) as unpacked:
        while len(text) < most and (data := unpacked.read(_PIECE_BYTES)):
            text += data
            size = packed.tell()
    return text, size if text else 0


class Unpacked:
    """What is in a compressed file, from its start. Streams that follow each other in it are one."""

    closed = False

    def __init__(self, packed: pa.NativeFile, compression: str, failure: Callable[[str], Exception]) -> None:
        self._packed, self._failure, self._name = packed, failure, compression
        begin = _UNPACKERS.get(compression)
        self._stream: Any = _Streams(packed, begin) if begin else pa.CompressedInputStream(packed, compression)

    def read(self, size: int) -> bytes:
        """The next bytes, none at the end. Raises what `failure` makes of a file that is not whole or was damaged."""
        try:
            return bytes(self._stream.read(size))
        except (OSError, lzma.LZMAError, EOFError, ValueError) as error:
            raise self._failure(
                f"cannot be unpacked ({self._name}): {str(error).splitlines()[0]}; truncated?"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._packed.close()

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Streams:
    """Streams of bz2 or xz that follow each other, as one."""

    def __init__(self, packed: pa.NativeFile, begin: Callable[[], Any]) -> None:
        self._packed, self._begin = packed, begin
        self._current = begin()

    def read(self, size: int) -> bytes:
        out = bytearray()
        while len(out) < size and self._more():
            out += self._current.decompress(self._next, size - len(out))
        return bytes(out)

    def _more(self) -> bool:
        """Get what the stream, or the next one, needs; whether there is any."""
        self._next = b""
        if self._current.eof:
            # Streams of XZ may be padded with zeros.
            rest = self._current.unused_data.lstrip(b"\0")
            while not rest and (data := self._packed.read(_READ_BYTES)):
                rest = data.lstrip(b"\0")
            if not rest:
                return False
            self._current, self._next = self._begin(), rest
        elif self._current.needs_input and not (data := self._packed.read(_READ_BYTES)):
            raise EOFError("it ends within a stream")
        elif self._current.needs_input:
            self._next = data
        return True

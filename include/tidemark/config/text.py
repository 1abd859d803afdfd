"""The text of a collection file: a regular file of bounded size, in UTF-8, without characters that are no text."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from tidemark.errors import InvalidUsage

MAX_BYTES = 2**20
READS = 3
"""How often a file is read that changes meanwhile."""
NO_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What YAML does not allow in a file: control characters, halves of surrogate pairs."""


def text_of(path: str | Path) -> str:
    """What a file holds, read whole at one moment. A link to a file is one; a FIFO, a socket or a device is not opened.

    Raises InvalidUsage in one line for a file that is not there, cannot be read, is none, is too large or no text.
    """
    for _ in range(READS):
        data, changed = _bytes(path)
        if not changed:
            break
    else:
        raise InvalidUsage(f"{path}: changes while it is read; it is read again in a moment")
    if len(data) > MAX_BYTES:
        raise InvalidUsage(f"{path}: has more than {MAX_BYTES} bytes; no collection file needs that")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidUsage(f"{path}:{line}: not UTF-8 text") from None
    if wrong := NO_TEXT.search(text):
        line = text[: wrong.start()].count("\n") + 1
        raise InvalidUsage(f"{path}:{line}: not YAML: the character U+{ord(wrong[0]):04X} is not allowed in a file")
    return text


def _bytes(path: str | Path) -> tuple[bytes, bool]:
    """At most one byte more than allowed, and whether the file changed while it was read."""
    try:
        # O_NONBLOCK: to open a FIFO would wait for somebody to write to it; of a file it means nothing.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        linked = " (a broken link)" if Path(path).is_symlink() else ""
        raise InvalidUsage(f"{path}: there is no such file{linked}") from None
    except (OSError, ValueError) as error:
        raise InvalidUsage(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise InvalidUsage(f"{path}: cannot be read: it is {_kind(before.st_mode)}, not a file")
        data = _upto(descriptor, MAX_BYTES + 1)
        return data, _stamp(before) != _stamp(os.fstat(descriptor))
    except OSError as error:
        raise InvalidUsage(f"{path}: cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _upto(descriptor: int, count: int) -> bytes:
    pieces: list[bytes] = []
    while count and (piece := os.read(descriptor, count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_mtime_ns, status.st_size


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")

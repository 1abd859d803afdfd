"""Messages between client, server and helpers: one JSON object per packet, with file descriptors beside it if needed.

All sockets are AF_UNIX SOCK_SEQPACKET: a packet arrives whole or not at all, and the kernel reports a peer that has
gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidemark.errors import InvalidUsage

VERSION = 1
MAX_PACKET = 128 * 1024
"""Bytes of one message; what the kernel surely takes in one packet by default."""
MAX_REQUEST = MAX_PACKET - 8 * 1024
"""Bytes of a run's arguments and environment; the server adds to them when it passes the request on."""
HELPER_S = 10.0
"""A helper of the server that takes no message for so long hangs."""
MAX_FDS = 4

Message = dict[str, Any]


class Channel:
    """One end of a packet connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> bool:
        """Send one message; False if the peer is gone, or does not read although its buffer is full."""
        data = json.dumps(message).encode()
        if len(data) > MAX_PACKET:
            raise InvalidUsage(f"a message of {len(data)} bytes exceeds {MAX_PACKET}: shorten the arguments")
        try:
            socket.send_fds(self.sock, [data], list(fds))
        except OSError:
            return False
        return True

    def receive(self) -> tuple[Message, list[int]] | None:
        """The next message and its descriptors, None when the peer has gone; TimeoutError as the socket is set."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, MAX_PACKET, MAX_FDS)
        except ConnectionError:
            return None
        if not data:
            close_all(fds)
            return None
        try:
            message = json.loads(data)
        except ValueError:
            message = None
        if not isinstance(message, dict):  # a stranger: treat as gone
            close_all(fds)
            return None
        return message, fds


def pair() -> tuple[Channel, Channel]:
    """Two connected ends: the server's, which waits for nobody for long, and its helper's."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.settimeout(HELPER_S)
    return Channel(one), Channel(other)


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def peer(sock: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the process at the other end, as the kernel knows it; for a client: of the process that listens."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return pid, uid


def is_trusted(uid: int, own: int) -> bool:
    """Only the user who owns the server may talk to it: not even root, whose environment must not leak into it."""
    return uid == own


_AMBIENT = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}
_AMBIENT |= {"JAVA_HOME", "PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"}
_AMBIENT |= {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
_AMBIENT_PREFIXES = ("TIDEMARK_", "AWS_", "LC_")


def ambient(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of a process's environment that a run may see: an allow-list, so that Airflow's own secrets stay out."""
    return {k: v for k, v in environ.items() if k in _AMBIENT or k.startswith(_AMBIENT_PREFIXES)}

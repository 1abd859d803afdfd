"""HTTP as it is on the wire, as far as S3 speaks it: messages with a length, several to a connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass
class Message:
    """A request or an answer: its first line, its headers by lower-case name, its body."""

    first: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def method(self) -> str:
        return self.first.split(" ")[0]

    @property
    def target(self) -> str:
        """Path and query, as they were sent."""
        return self.first.split(" ")[1]

    def as_bytes(self) -> bytes:
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return f"{self.first}\r\n{head}\r\n".encode("latin-1") + self.body


def receive(
    stream: BinaryIO, *, go_on: Callable[[bytes], object] | None = None, bodiless: bool = False
) -> Message | None:
    """The next message; None at the end of the connection. `go_on` is called where a request waits
    for a permission to go on."""
    first = stream.readline().decode("latin-1").rstrip("\r\n")
    if not first:
        return None
    message = Message(first, {})
    while line := stream.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = line.partition(":")
        message.headers[name.strip().lower()] = value.strip()
    if go_on and message.headers.get("expect", "").lower() == "100-continue":
        go_on(GO_ON)
    if not bodiless:
        message.body = stream.read(int(message.headers.get("content-length", 0)))
    return message

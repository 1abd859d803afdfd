"""Trouble on the wire: a proxy between a client and an HTTP server passes messages on, delays, cuts or forges them.

What one proxy has to do with a request is a `Trouble`; `Proxy.script` says which request gets which.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import unquote, urlsplit

from support.wire import Message, receive


@dataclass(frozen=True)
class Trouble:
    """What happens to one request and its answer.

    `passed`: the server gets the request, so that its effect happens. `status` and `code`: an error is answered, else
    the server's answer. `cut`: the connection ends after so many bytes of the answer's body (-1: before its head).
    `short`: the body ends after so many bytes, and the head says that this is all. `wait`: seconds of silence before
    the last byte of the answer. `forge`: what is answered in place of the server's answer.
    """

    name: str
    passed: bool = True
    status: str = ""
    cut: int | None = None
    short: int | None = None
    wait: float = 0.0
    forge: Callable[[Message], Message] | None = None

    def __str__(self) -> str:
        return self.name


def answered(status: str, *, passed: bool = False) -> Trouble:
    """An error such as `503 SlowDown`, before the effect or after it."""
    return Trouble(f"{status} {'after' if passed else 'before'} its effect", passed, status)


LOST_REQUEST = Trouble("lost request", passed=False, cut=-1)
LOST_REPLY = Trouble("lost reply", cut=-1)
CUT_BODY = Trouble("cut body", cut=7)
SHORT_BODY = Trouble("short body", short=7)
SLOW_DOWN = answered("503 SlowDown")
INTERNAL_ERROR = answered("500 InternalError", passed=True)
CONFLICT = answered("409 ConditionalRequestConflict")

Script = Callable[[Message], Trouble | None]


class Proxy(ThreadingTCPServer):
    """Passes requests on to `upstream`. `requests` are those since `arm`, as `PUT /bucket/key`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstream = urlsplit(upstream)
        self.lock = threading.Lock()
        self.arm(None)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def arm(self, script: Script | None) -> None:
        """Forget what was; from here the script says what happens to a request."""
        with self.lock:
            self.script, self.requests, self.troubled = script, [], []

    def arm_nth(self, nth: int, trouble: Trouble) -> None:
        """Trouble for the `nth` request (from 1) alone."""
        self.arm(lambda request: trouble if len(self.requests) == nth else None)

    def trouble(self, request: Message) -> Trouble | None:
        with self.lock:
            name = f"{request.method} {unquote(request.target.partition('?')[0])}"
            self.requests.append(name)
            trouble = self.script(request) if self.script else None
            if trouble:
                self.troubled.append(f"{name}: {trouble}")
            return trouble


@contextmanager
def proxy(upstream: str) -> Iterator[Proxy]:
    """A proxy, which ends with the block."""
    with Proxy(upstream) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield running
        running.shutdown()


class _Connection(StreamRequestHandler):
    disable_nagle_algorithm = True
    server: Proxy

    def handle(self) -> None:
        try:
            with socket.create_connection((self.server.upstream.hostname, self.server.upstream.port)) as upstream:
                upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with upstream.makefile("rb") as answers:
                    while request := receive(self.rfile, go_on=self.wfile.write):
                        trouble = self.server.trouble(request)
                        answer = self._answer(request, trouble, upstream, answers)
                        if not self._send(answer, trouble or NONE):
                            return
        except (ConnectionError, ValueError):
            return  # the client has gone, as clients do when they run out of patience

    def _answer(self, request: Message, trouble: Trouble | None, upstream: socket.socket, answers) -> Message:
        request.headers.pop("expect", None)
        answer = Message("HTTP/1.1 500 Nothing", {"content-length": "0"})
        if trouble is None or trouble.passed:
            upstream.sendall(request.as_bytes())
            answer = receive(answers, bodiless=request.method == "HEAD") or answer
        if trouble and trouble.forge:
            answer = trouble.forge(answer)
        if trouble and trouble.status:
            code = trouble.status.split()[1]
            body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
            body = b"" if request.method == "HEAD" else body
            answer = Message(f"HTTP/1.1 {trouble.status}", {"content-length": str(len(body))}, body)
        return answer

    def _send(self, answer: Message, trouble: Trouble) -> bool:
        """Whether the connection goes on."""
        if trouble.cut == -1:
            return False
        if trouble.short is not None and len(answer.body) > trouble.short:
            answer.body = answer.body[: trouble.short]
            answer.headers["content-length"] = str(trouble.short)
        data = answer.as_bytes()
        if trouble.cut is not None and len(answer.body) > trouble.cut:
            self.wfile.write(data[: len(data) - len(answer.body) + trouble.cut])
            return False
        if trouble.wait:
            self.wfile.write(data[:-1])
            time.sleep(trouble.wait)
            data = data[-1:]
        self.wfile.write(data)
        return True


NONE = Trouble("none")

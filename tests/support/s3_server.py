"""An S3 server in a process of its own: as a script it prints its address and ends with its input.

It is versitygw where `make s3-server` has built that, else moto's, made atomic: S3 answers a conditional create in one
step. moto looks first and writes then, and with a thread for each request may let two writers win: so here one request
is answered at a time.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import unquote_to_bytes

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.wire import Message, receive

ACCESS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""The environment of a client, beside AWS_ENDPOINT_URL."""


BUILT = Path(__file__).parents[2] / "build" / "versitygw"
VERSITY, MOTO = "versitygw", "moto"


def chosen() -> str:
    """Which server it is: the real one if it is built, unless TIDEMARK_TEST_S3 says `moto`."""
    return MOTO if os.environ.get("TIDEMARK_TEST_S3") == MOTO or not BUILT.exists() else VERSITY


@contextmanager
def s3_server(server: str = MOTO) -> Iterator[str]:
    """The address of a server that is empty, and gone afterwards."""
    command = [sys.executable, __file__, server]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


class Server(ThreadingTCPServer):
    """A WSGI application by HTTP: connections at once, requests one at a time."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.application, self.lock = application, threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, request: Message) -> Message:
        said: list[Any] = []
        with self.lock:
            body = b"".join(self.application(self._environ(request), lambda *words: said.extend(words)))
        answer = Message(f"HTTP/1.1 {said[0]}", {name.lower(): value for name, value in said[1]}, body)
        if request.method == "HEAD":
            answer.body = b""
        else:
            answer.headers["content-length"] = str(len(body))
        return answer

    def _environ(self, request: Message) -> dict[str, Any]:
        path, _, query = request.target.partition("?")
        names = {name: name.upper().replace("-", "_") for name in request.headers}
        headers = {f"HTTP_{names[name]}": value for name, value in request.headers.items()}
        return headers | {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "RAW_URI": request.target,
            "REQUEST_URI": request.target,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.server_address[1]),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(request.body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }


class _Connection(StreamRequestHandler):
    disable_nagle_algorithm = True
    server: Server

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that has cut its connection
            while request := receive(self.rfile, go_on=self.wfile.write):
                self.wfile.write(self.server.answer(request).as_bytes())


def serve_moto() -> None:
    from moto.server import create_backend_app

    application = create_backend_app("s3")
    application.debug = False
    server = Server(application)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.address, flush=True)
    sys.stdin.read()


def serve_versity() -> None:
    """The real server over a folder of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = ("127.0.0.1", port)
    keys = ["--access", ACCESS["AWS_ACCESS_KEY_ID"], "--secret", ACCESS["AWS_SECRET_ACCESS_KEY"]]
    with tempfile.TemporaryDirectory(prefix="s3-") as folder:
        command = [str(BUILT), *keys, "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet", "posix", folder]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
            while server.poll() is None and not answers(address):
                time.sleep(0.05)
            if server.poll() is None:
                print(f"http://127.0.0.1:{port}", flush=True)
                sys.stdin.read()
            server.terminate()


def answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    {MOTO: serve_moto, VERSITY: serve_versity}[sys.argv[1]]()

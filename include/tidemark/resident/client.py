"""The client of the resident server: run an app on it, starting the server if there is none.

python -m tidemark.resident.client status|start|stop [--now]
python -m tidemark.resident.client run APP [ARG ...]
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.errors import CommitUnknown, Contention, InvalidUsage
from tidemark.resident.protocol import MAX_REQUEST, VERSION, Channel, Message, ambient, close_all, is_trusted, peer
from tidemark.resident.server_folder import PACKAGE, ServerFolder, Settings, fingerprint

CONNECT_S = 5.0
HELLO_S = 30.0
"""A server that listens but says nothing for so long hangs: it is killed, a fresh one started."""
LISTEN_S = 60.0
"""From the start of a server until it listens (it has imported nothing by then, but the machine may be busy)."""
END_S = 60.0
"""From the last word of a server, or a signal it cannot refuse, to the end of its process: moments, on a busy machine
more."""
DRAIN_S = 2.0
"""How long output is awaited after the end of the app: what it has started may hold its pipes open."""
_LOG_BYTES = 4_000_000

Sink = Callable[[str], None]


class ResidentUnavailable(Contention):
    """No resident server could be reached or started. Nothing happened; run again."""


class ResidentLost(CommitUnknown):
    """The server, or the connection to it, ended while the app ran. The app is dead or dying; run again."""


@dataclass(frozen=True)
class Ended:
    """How an app ended: with an exit code, or by a signal (not 0)."""

    code: int
    signal: int = 0


class Resident:
    """A client for one place and one set of settings. One run at a time; `cancel` may come from a signal handler."""

    def __init__(
        self,
        settings: Settings,
        place: ServerFolder | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        hello_s: float = HELLO_S,
    ) -> None:
        if sys.platform != "linux":
            raise InvalidUsage(f"the resident launcher needs Linux, this is {sys.platform}: use the launcher submit")
        self._environ = dict(os.environ if environ is None else environ)
        self._place = place or ServerFolder.default(self._environ)
        self._settings = settings
        self._hello_s = hello_s
        self._silent_s = 1.5 * settings.patience_s  # a little longer than the server is patient with its helpers
        self._channel: Channel | None = None
        self._cancelled = False

    def run(
        self,
        app: Path,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        conf: Mapping[str, str] | None = None,
        needs: Sequence[str] = (),
        out: Sink = print,
        err: Sink = print,
    ) -> Ended:
        """Run the app as `python app argv` would and return how it ended; `out` and `err` get its output by lines.

        The app sees the allowed part of this process's environment and all of `env`. `conf` sets what a Spark session
        can set. If it `needs` a module the server is still importing, it waits for it. When this process dies, or
        leaves this call in any way, the app is killed. ResidentUnavailable, ResidentLost: retry.
        """
        request = {
            "app": str(app.resolve(strict=True)),
            "argv": list(argv),
            "cwd": str(cwd),
            "env": {**ambient(self._environ), **(env or {})},
            "conf": dict(conf or {}),
            "needs": list(needs),
        }
        if (size := len(json.dumps(request))) > MAX_REQUEST:
            raise InvalidUsage(f"arguments and environment have {size} bytes, {MAX_REQUEST} are possible: shorten them")
        with self._sent(request) as (channel, pipes):
            return self._follow(channel, pipes, out, err)

    def cancel(self) -> None:
        """End the run under way: the server kills the app as soon as it sees the connection go."""
        self._cancelled = True
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.sock.shutdown(socket.SHUT_RDWR)

    def start(self) -> Message:
        """Start the server if there is none; its status."""
        channel, hello = self._open()
        channel.close()
        return hello

    def status(self) -> Message | None:
        """What the server says of itself, None if there is none."""
        channel = self._connect()
        if channel is None:
            return None
        hello = self._hello(channel)
        channel.close()
        return hello

    def is_warm(self) -> bool:
        """Whether a server of ours has its Spark up: running an app there starts nothing."""
        status = self.status()
        return status is not None and bool(status["up"]) and status["fingerprint"] == fingerprint(self._settings)

    def stop(self, *, now: bool = False) -> bool:
        """Let the server end when its runs have, or `now`. False if there is none. Returns when it has ended."""
        channel = self._connect()
        if channel is None or self._hello(channel) is None:
            self._place.tidy(log=False)
            return False
        process = _process_of(channel)
        channel.send({"retire": now})
        channel.sock.settimeout(None)
        while channel.receive() is not None:  # it closes our connection when all else has been done
            pass
        if process is not None:
            select.select([process], [], [], END_S)
            os.close(process)
        self._place.tidy(log=False)  # in case it was killed
        return True

    # --- the run

    @contextlib.contextmanager
    def _sent(self, request: Message) -> Iterator[tuple[Channel, tuple[int, int]]]:
        """A server that has taken the request, and the read ends of the app's output."""
        for _ in range(3):  # a server may end between its greeting and our request
            channel, _hello = self._open()
            self._channel = channel
            out_r, out_w = os.pipe()
            err_r, err_w = os.pipe()
            try:
                sent = not self._cancelled and channel.send({"run": request}, [out_w, err_w])
                close_all([out_w, err_w])
                if self._cancelled:
                    raise ResidentLost("the run was cancelled before it began")
                if sent and _is(channel.receive(), "queued"):
                    yield channel, (out_r, err_r)
                    return
            finally:
                close_all([out_r, err_r])
                channel.close()
                self._channel = None
        raise ResidentUnavailable(f"no resident server took the request at {self._place.socket}: see {self._place.log}")

    def _follow(self, channel: Channel, pipes: tuple[int, int], out: Sink, err: Sink) -> Ended:
        """Pass the output on until the app has ended and its pipes are empty."""
        ended: Ended | None = None
        lines = {pipes[0]: _Lines(out), pipes[1]: _Lines(err)}
        deadline = time.monotonic() + self._silent_s
        with selectors.DefaultSelector() as selector:
            for fileobj in (channel, *pipes):
                selector.register(fileobj, selectors.EVENT_READ)
            while lines or ended is None:
                for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                    if key.fd in lines:
                        if not lines[key.fd].take(key.fd):
                            del lines[key.fd]
                            selector.unregister(key.fd)
                        continue
                    message = self._heard(channel)
                    deadline = time.monotonic() + self._silent_s
                    if _is(message, "ended"):
                        ended = Ended(**message[0]["ended"])
                        selector.unregister(channel)
                        deadline = time.monotonic() + DRAIN_S
                if time.monotonic() >= deadline:
                    break
        for rest in lines.values():
            rest.close()
        if ended is None:
            _kill_peer(channel)  # which ends the app: it must not go on beside a second attempt
            raise ResidentLost(f"the resident server was silent for {self._silent_s:.0f} s: see {self._place.log}")
        return ended

    def _heard(self, channel: Channel) -> tuple[Message, list[int]]:
        message = channel.receive()
        if message is None:
            why = (
                "the run was cancelled" if self._cancelled else f"the resident server has ended: see {self._place.log}"
            )
            raise ResidentLost(why)
        return message

    # --- the server

    def _open(self) -> tuple[Channel, Message]:
        """A connection to a server with our fingerprint; one with another is retired, a silent one killed."""
        ours = fingerprint(self._settings)
        self._place.prepare()
        for _ in range(5):
            channel = self._connect() or self._start()
            hello = self._hello(channel)
            if hello is None:
                channel.close()
            elif hello.get("hello") == VERSION and hello.get("fingerprint") == ours:
                channel.sock.settimeout(self._silent_s)
                return channel, hello
            else:
                channel.send({"retire": False})
                _is(channel.receive(), "retired")  # by then it has left the place
                channel.close()
        raise ResidentUnavailable(f"no resident server of ours stays at {self._place.socket}: see {self._place.log}")

    def _connect(self) -> Channel | None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(CONNECT_S)
        try:
            sock.connect(str(self._place.socket))
        except TimeoutError:
            sock.close()
            raise ResidentUnavailable(f"{self._place.socket} takes no connection within {CONNECT_S} s") from None
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
            sock.close()
            return None
        pid, uid = peer(sock)
        if not is_trusted(uid, os.geteuid()):
            sock.close()
            raise InvalidUsage(f"{self._place.socket} is served by process {pid} of user {uid}, not of {os.geteuid()}")
        return Channel(sock)

    def _hello(self, channel: Channel) -> Message | None:
        """The server's greeting; None if it is gone, also because it hung and was killed."""
        channel.sock.settimeout(self._hello_s)
        try:
            got = channel.receive()
        except TimeoutError:
            _kill_peer(channel)
            return None
        return got[0] if got else None

    def _start(self) -> Channel:
        """Start a server, unless somebody else just has."""
        with self._place.start_lock():
            if channel := self._connect():
                return channel
            process = self._spawn()
            deadline = time.monotonic() + LISTEN_S
            while process.poll() is None and time.monotonic() < deadline:
                if channel := self._connect():
                    return channel
                time.sleep(0.02)
        raise ResidentUnavailable(f"the resident server did not start within {LISTEN_S:.0f} s: see {self._place.log}")

    def _spawn(self) -> subprocess.Popen[bytes]:
        """A server in a session of its own, which the end of this process, or a kill of its group, does not touch."""
        env = ambient(self._environ)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE.parent), env.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "tidemark.resident.server", "--socket", str(self._place.socket)]
        command += ["--settings", "-"]
        log = self._place.log
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as sink:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                env=env,
                cwd="/",
                start_new_session=True,
            )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:  # settings may be secret, arguments are not
            stdin.write(self._settings.to_json().encode())
        return process


class _Lines:
    """Cuts what comes through a pipe into lines."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rest = b""

    def take(self, fd: int) -> bool:
        data = os.read(fd, io.DEFAULT_BUFFER_SIZE * 8)
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._sink(line.decode(errors="replace"))
        if not data:
            self.close()
        return bool(data)

    def close(self) -> None:
        if self._rest:
            self._sink(self._rest.decode(errors="replace"))
            self._rest = b""


def _kill_peer(channel: Channel) -> None:
    """SIGKILL the process at the other end, and wait for its end; never another one that has got its number."""
    if (process := _process_of(channel)) is not None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], END_S)
        os.close(process)


def _process_of(channel: Channel) -> int | None:
    """A descriptor of the process at the other end, None if it has ended, or lives where we cannot see it."""
    try:
        process = os.pidfd_open(peer(channel.sock)[0])
    except (OSError, ValueError):
        return None
    gone = select.poll()
    gone.register(channel.sock, select.POLLRDHUP)
    if not gone.poll(0):  # it still holds its end, so the number was its own when we opened it
        return process
    os.close(process)
    return None


def _is(got: tuple[Message, list[int]] | None, what: str) -> bool:
    return got is not None and what in got[0]


def main(argv: Sequence[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="python -m tidemark.resident.client", description=__doc__)
    parser.add_argument("command", choices=["status", "start", "stop", "run"])
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="stop: --now; run: the app and its arguments")
    parser.add_argument("--master", default="local[2]")
    args = parser.parse_args(argv)
    resident = Resident(Settings.from_environ(os.environ, master=args.master))
    match args.command, args.rest:
        case "status", _:
            print(json.dumps(resident.status() or {"running": False}))
        case "start", _:
            print(json.dumps(resident.start()))
        case "stop", rest:
            print("stopped" if resident.stop(now="--now" in rest) else "there is no resident server")
        case "run", [app, *rest]:
            ended = resident.run(
                Path(app), rest, cwd=Path.cwd(), err=lambda line: print(line, file=sys.stderr, flush=True)
            )
            return 128 + ended.signal if ended.signal else ended.code
        case _:
            parser.error("run needs an app")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The resident server: bookkeeping between clients, nursery, keeper and JVM. It computes nothing and never blocks.

    python -m tidemark.resident.server --socket PATH --settings JSON

Guarantees: a client that goes away takes its run along; a run that ends, however it ends, has its Spark jobs cancelled
and is reported; if JVM, keeper or first nursery die or do not answer, the server ends, and every client learns of it at
once.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.resident import jvm
from tidemark.resident.place import Place, Settings, fingerprint
from tidemark.resident.protocol import VERSION, Channel, Message, close_all, is_trusted, pair, peer

BEAT_S = 5.0
"""A running client hears from the server at least this often."""
HELPER_SILENT_S = 120.0
"""A keeper (hence a JVM) that does not answer for so long is given up."""
JVM_GRACE_S = 10.0


@dataclass
class Run:
    """One request of one client, from the queue to its end."""

    name: str
    client: Channel
    request: Message
    fds: list[int]
    gateway: int | None = None
    nursery: Channel | None = None
    pid: int | None = None
    tags: list[str] = field(default_factory=list)
    abandoned: bool = False


class Fatal(Exception):
    """The server cannot go on."""


class Server:
    def __init__(self, place: Place, settings: Settings) -> None:
        self._place = place
        self._settings = settings
        self._fingerprint = fingerprint(settings)
        self._selector = selectors.DefaultSelector()
        self._runs: dict[str, Run] = {}
        self._queue: list[Run] = []
        self._clients: set[Channel] = set()
        self._nurseries: dict[Channel, set[str]] = {}  # ready ones, by age, with what they have imported
        self._first, self._first_end = pair()
        self._keeper, self._keeper_end = pair()
        self._second: Channel | None = None
        self._gateways: list[Message] = []
        self._count = 0
        self._up = False
        self._retired = self._stopping = False
        self._owner: int | None = None
        self._active = self._answered = self._beat = time.monotonic()

    # --- life

    def serve(self) -> int:
        """Until idle for long enough, retired and done, or told to stop by SIGTERM; the exit code."""
        self._place.prepare()
        self._owner = self._own()
        if self._owner is None:
            _log(f"another server owns {self._place.socket}")
            return 1
        self._listen()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        process: subprocess.Popen[bytes] | None = None
        try:
            process = jvm.start(self._settings, self._place)
            self._watch(os.pidfd_open(process.pid), self._jvm_ended)
            self._start_nursery()
            _log(f"serving at {self._place.socket}, master {self._settings.master}, {self._fingerprint}")
            while not self._done():
                self._turn()
        except Fatal as e:
            _log(f"ends: {e}")
            return 1
        finally:
            self._release()
            self._end(process)
        _log("ends")
        return 0

    def _turn(self) -> None:
        for key, _ in self._selector.select(1.0):
            if _is_open(key.fileobj):  # else an earlier event of this turn has closed it
                key.data()
        if self._stopping:
            self._retire(now=True)
        self._schedule()
        now = time.monotonic()
        if self._runs or self._queue:
            self._active = now
        if now - self._beat >= BEAT_S:
            self._beat = now
            for run in [*self._runs.values(), *self._queue]:
                run.client.send({"beat": True})
            if self._up:
                self._tell(self._keeper, {"ping": True})
        if now - self._answered > HELPER_SILENT_S:
            raise Fatal(f"keeper or JVM did not answer for {HELPER_SILENT_S:.0f} s")

    def _done(self) -> bool:
        if self._runs or self._queue:
            return False
        return self._retired or time.monotonic() - self._active > self._settings.idle_s

    def _own(self) -> int | None:
        deadline = time.monotonic() + 5  # a server just retired lets go of the place a moment after saying so
        while (owner := self._place.own()) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        return owner

    def _listen(self) -> None:
        self._place.socket.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = os.umask(0o177)
        try:
            self._listener.bind(str(self._place.socket))
        finally:
            os.umask(before)
        self._listener.listen(128)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _release(self) -> None:
        """Leave the place to another server. The runs of this one go on."""
        if self._owner is None:
            return
        self._selector.unregister(self._listener)
        self._place.socket.unlink(missing_ok=True)
        self._listener.close()
        os.close(self._owner)
        self._owner = None

    def _on_sigterm(self, *_: object) -> None:
        self._stopping = True  # acted on by the loop: a signal may come between any two lines of it

    def _end(self, process: subprocess.Popen[bytes] | None) -> None:
        for channel in [*self._clients, self._first, self._keeper, self._second]:
            if channel is not None:
                channel.close()
        if process is not None:
            jvm.stop(process, self._place, grace_s=JVM_GRACE_S)

    # --- helpers

    def _tell(self, helper: Channel, message: Message, fds: Sequence[int] = ()) -> None:
        if not helper.send(message, fds) and helper is not self._second:
            raise Fatal(f"a helper does not take the message {sorted(message)}")

    def _watch(self, channel: Channel | int, then: Callable[[], None]) -> None:
        self._selector.register(channel, selectors.EVENT_READ, then)

    def _jvm_ended(self) -> None:
        raise Fatal("the JVM has ended")

    def _start_nursery(self) -> None:
        end = self._first_end
        command = [sys.executable, "-m", "tidemark.resident.nursery", str(end.fileno()), str(os.getpid())]
        command += self._settings.first
        self._nursery_process = subprocess.Popen(command, pass_fds=[end.fileno()], stdin=subprocess.DEVNULL)
        end.close()
        self._watch(self._first, lambda: self._from_nursery(self._first))

    def _start_keeper(self) -> None:
        connection = str(jvm.connection_file(self._place))
        self._tell(self._first, {"keeper": connection}, [self._keeper_end.fileno()])
        self._keeper_end.close()
        self._watch(self._keeper, self._from_keeper)

    def _grow(self) -> None:
        """Let a second nursery import what is slow, beside the runs of the first."""
        ours, theirs = pair()
        self._second = ours
        self._watch(ours, lambda: self._from_nursery(ours))
        self._tell(self._first, {"grow": list(self._settings.later)}, [theirs.fileno()])
        theirs.close()

    def _from_nursery(self, channel: Channel) -> None:
        got = channel.receive()
        if got is None:
            self._lost_nursery(channel)
            return
        match got[0]:
            case {"ready": list(modules)}:
                self._nurseries[channel] = set(modules)
                if channel is self._first:
                    self._start_keeper()
                _log(f"imported {', '.join(modules)}")
            case {"run": str(name), "pid": int(pid)} if name in self._runs:
                self._runs[name].pid = pid
                self._runs[name].client.send({"started": pid})
            case {"run": str(name), "session": str(tag)} if name in self._runs:
                self._runs[name].tags.append(tag)
            case {"run": str(name), "code": int(code), "signal": int(number)} if name in self._runs:
                self._ended(self._runs[name], code, number)

    def _lost_nursery(self, channel: Channel) -> None:
        if channel is self._first:
            raise Fatal("the nursery has ended")
        _log("the second nursery has ended; the first serves on")
        self._selector.unregister(channel)
        channel.close()
        self._nurseries.pop(channel, None)
        self._second = None
        for run in [r for r in self._runs.values() if r.nursery is channel]:
            self._ended(run, 0, signal.SIGKILL)

    def _from_keeper(self) -> None:
        got = self._keeper.receive()
        if got is None:
            raise Fatal("the keeper has ended")
        self._answered = time.monotonic()
        match got[0]:
            case {"up": _}:
                self._up = True
                _log("Spark is up")
                self._open_gateway()
                if self._settings.later:
                    self._grow()
            case {"gateway": int(), "port": int(), "secret": str()} as gateway:
                self._gateways.append(gateway)
            case {"pong": False}:
                raise Fatal("the SparkContext has been stopped")

    def _open_gateway(self) -> None:
        self._count += 1
        self._tell(self._keeper, {"open": self._count})

    # --- clients

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        pid, uid = peer(sock)
        if not is_trusted(uid, os.geteuid()):
            _log(f"refused process {pid} of user {uid}")
            sock.close()
            return
        sock.setblocking(False)
        client = Channel(sock)
        self._clients.add(client)
        self._watch(client, lambda: self._from_client(client))
        client.send({"hello": VERSION, **self._status()})

    def _status(self) -> Message:
        return {
            "pid": os.getpid(),
            "fingerprint": self._fingerprint,
            "master": self._settings.master,
            "up": self._up,
            "running": len(self._runs),
            "queued": len(self._queue),
            "imported": sorted(set().union(*self._nurseries.values())),
            "log": str(self._place.log),
        }

    def _from_client(self, client: Channel) -> None:
        got = client.receive()
        if got is None:
            self._lost_client(client)
            return
        message, fds = got
        match message:
            case {"run": {"app": str(), "argv": list(), "env": dict(), "cwd": str()} as request} if len(fds) == 2:
                self._queue.append(Run(f"tidemark-{os.urandom(8).hex()}", client, request, fds))
                client.send({"queued": True})
                return
            case {"retire": bool(now)}:
                self._retire(now=now)
                client.send({"retired": True})
            case {"status": _}:
                client.send(self._status())
        close_all(fds)

    def _lost_client(self, client: Channel) -> None:
        self._selector.unregister(client)
        self._clients.discard(client)
        client.close()
        for run in [r for r in self._queue if r.client is client]:
            self._queue.remove(run)
            close_all(run.fds)
        for run in [r for r in self._runs.values() if r.client is client]:
            _log(f"{run.name}: the client has gone, its run ends")
            run.abandoned = True
            self._kill(run)

    def _retire(self, *, now: bool) -> None:
        """Take no more clients; end when the runs have, or at once."""
        if not self._retired:
            _log("retires")
        self._retired = True
        self._release()
        if now:
            for run in [*self._queue, *self._runs.values()]:
                self._kill(run)
            self._queue.clear()

    # --- runs

    def _schedule(self) -> None:
        for run in list(self._queue):
            if len(self._runs) >= self._settings.max_runs or not self._gateways:
                return
            if nursery := self._nursery_for(run):
                self._queue.remove(run)
                self._start(run, nursery)

    def _nursery_for(self, run: Run) -> Channel | None:
        """The best one there is; none if a better one for what the run needs is on its way."""
        needs = set(run.request.get("needs") or ())
        if self._second and self._second not in self._nurseries and needs & set(self._settings.later):
            return None
        return next(reversed(self._nurseries), None)

    def _start(self, run: Run, nursery: Channel) -> None:
        gateway = self._gateways.pop()
        run.gateway, run.nursery, run.tags = gateway["gateway"], nursery, [run.name]
        self._runs[run.name] = run
        wired = {"run": run.name, "port": gateway["port"], "secret": gateway["secret"]}
        self._tell(nursery, {**run.request, **wired}, run.fds)
        close_all(run.fds)
        run.fds = []
        self._open_gateway()
        _log(f"{run.name}: {Path(str(run.request['app'])).name}, {len(self._runs)} running")

    def _kill(self, run: Run) -> None:
        close_all(run.fds)
        run.fds = []
        if run.nursery is not None:
            self._tell(run.nursery, {"kill": run.name})
            # Do not wait for the child's end: its jobs may be long.
            self._tell(self._keeper, {"close": run.gateway, "tags": run.tags})

    def _ended(self, run: Run, code: int, number: int) -> None:
        del self._runs[run.name]
        self._tell(self._keeper, {"close": run.gateway, "tags": run.tags})
        if not self._runs:
            self._tell(self._keeper, {"tidy": True})
        _log(f"{run.name}: ended with {f'signal {number}' if number else f'exit {code}'}")
        if not run.abandoned:
            run.client.send({"ended": {"code": code, "signal": number}})


def _is_open(fileobj: object) -> bool:
    return isinstance(fileobj, int) or fileobj.fileno() >= 0  # type: ignore[attr-defined]


def _log(text: str) -> None:
    print(
        f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} resident[{os.getpid()}] {text}",
        file=sys.stderr,
        flush=True,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemark.resident.server", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="where to listen")
    parser.add_argument("--master", default="local[2]", help="the Spark master")
    parser.add_argument(
        "--settings", help="all of tidemark.resident.place.Settings as a JSON object, instead of --master"
    )
    args = parser.parse_args(argv)
    settings = Settings.from_json(args.settings) if args.settings else Settings(master=args.master)
    return Server(Place(args.socket), settings).serve()


if __name__ == "__main__":
    sys.exit(main())

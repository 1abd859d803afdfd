"""The resident server: bookkeeping between clients, fork server, context owner and JVM. It computes nothing and never
blocks.

    python -m tidemark.resident.server --socket PATH --settings JSON

Guarantees: a client that goes away takes its run along; a run that ends, however it ends, has its Spark jobs cancelled
and is reported; if JVM, context owner or first fork server die, are stopped or do not answer, or Spark runs no job any
more, the server ends, and every client learns of it at once. A run's process or a worker that is stopped for too long
is killed.
"""

from __future__ import annotations

import argparse
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.resident.helpers import Fatal, Helpers, log
from tidemark.resident.protocol import VERSION, Channel, Message, close_all, is_trusted, peer
from tidemark.resident.server_folder import ServerFolder, Settings, fingerprint

BEAT_S = 5.0
"""A running client hears from the server at least this often."""
JVM_GRACE_S = 10.0


@dataclass
class Run:
    """One request of one client, from the queue to its end."""

    name: str
    client: Channel
    request: Message
    fds: list[int]
    gateway: int | None = None
    fork_server: Channel | None = None
    tags: list[str] = field(default_factory=list)
    abandoned: bool = False


class Server(Helpers):
    def __init__(self, place: ServerFolder, settings: Settings) -> None:
        super().__init__(place, settings)
        self._fingerprint = fingerprint(settings)
        self._runs: dict[str, Run] = {}
        self._queue: list[Run] = []
        self._clients: set[Channel] = set()
        self._retired = self._stopping = False
        self._owner: int | None = None
        self._active = self._beat = self._health.now()

    # --- life

    def serve(self) -> int:
        """Until idle for long enough, retired and done, or stopped by SIGTERM; the exit code."""
        self._place.prepare()
        self._owner = self._own()
        if self._owner is None:
            log(f"another server owns {self._place.socket}")
            return 1
        self._listen()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        failed = True
        try:
            self._start_helpers()
            log(f"serving at {self._place.socket}, master {self._settings.master}, {self._fingerprint}")
            while not self._done():
                self._turn()
            failed = False
        except Fatal as e:
            log(f"ends: {e}")
            return 1
        finally:
            self._release()
            self._end(failed=failed)
        return 0

    def _turn(self) -> None:
        for key, _ in self._selector.select(1.0):
            if _is_open(key.fileobj):  # else an earlier event of this turn has closed it
                key.data()
        if self._stopping:
            self._retire(now=True)
        self._schedule()
        now = self._health.now()
        if self._runs or self._queue:
            self._active = now
        if now - self._beat >= min(BEAT_S, self._settings.patience_s / 4):
            self._beat = now
            for run in [*self._runs.values(), *self._queue]:
                run.client.send({"beat": True})
            self._look_after_all(self._runs)

    def _done(self) -> bool:
        if self._runs or self._queue:
            return False
        return self._retired or self._health.now() - self._active > self._settings.idle_s

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
        self._listener.close()
        self._place.disown(self._owner)
        self._owner = None

    def _on_sigterm(self, *_: object) -> None:
        self._stopping = True  # acted on by the loop: a signal may come between any two lines of it

    def _end(self, *, failed: bool) -> None:
        """End all helpers and remove all files. Who waits for a run learns of a failure first, who waits for the end of
        this server last."""
        for channel in self._clients if failed else ():
            channel.close()
        self._end_helpers(grace_s=0 if failed else JVM_GRACE_S)
        log("has ended")
        self._place.tidy(log=not failed)
        for channel in self._clients:
            channel.close()

    # --- clients

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        pid, uid = peer(sock)
        if not is_trusted(uid, os.geteuid()):
            log(f"refused process {pid} of user {uid}")
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
            "imported": sorted(set().union(*self._fork_servers.values())),
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
            log(f"{run.name}: the client has gone, its run ends")
            run.abandoned = True
            self._kill(run)

    def _retire(self, *, now: bool) -> None:
        """Take no more clients; end when the runs have, or at once."""
        if not self._retired:
            log("retires")
        self._retired = True
        self._release()
        if now:
            for run in [*self._queue, *self._runs.values()]:
                self._kill(run)
            self._queue.clear()

    # --- runs

    def _run_started(self, name: str, pid: int) -> bool:
        if run := self._runs.get(name):
            run.client.send({"started": pid})
        return run is not None

    def _run_reports(self, name: str, message: Message) -> None:
        match self._runs.get(name), message:
            case Run() as run, {"session": str(tag)}:
                run.tags.append(tag)
            case Run() as run, {"code": int(code), "signal": int(number)}:
                self._ended(run, code, number)

    def _runs_lost(self, fork_server: Channel) -> None:
        for run in [r for r in self._runs.values() if r.fork_server is fork_server]:
            self._ended(run, 0, signal.SIGKILL)

    def _schedule(self) -> None:
        for run in list(self._queue):
            if len(self._runs) >= self._settings.max_runs or not self._gateways:
                return
            if fork_server := self._fork_server_for(run):
                self._queue.remove(run)
                self._start(run, fork_server)

    def _fork_server_for(self, run: Run) -> Channel | None:
        """The best one there is; none if a better one for what the run needs is on its way."""
        needs = set(run.request.get("needs") or ())
        if self._second and self._second not in self._fork_servers and needs & set(self._settings.later):
            return None
        return next(reversed(self._fork_servers), None)

    def _start(self, run: Run, fork_server: Channel) -> None:
        gateway = self._gateways.pop()
        run.gateway, run.fork_server, run.tags = gateway["gateway"], fork_server, [run.name]
        self._runs[run.name] = run
        wired = {"run": run.name, "port": gateway["port"], "secret": gateway["secret"], "scratch": self._temporary(run)}
        self._send(fork_server, {**run.request, **wired}, run.fds)
        close_all(run.fds)
        run.fds = []
        self._open_gateway()
        log(f"{run.name}: {Path(str(run.request['app'])).name}, {len(self._runs)} running")

    def _temporary(self, run: Run) -> str:
        assert self._scratch is not None
        return str(self._scratch.path / run.name)

    def _kill(self, run: Run) -> None:
        close_all(run.fds)
        run.fds = []
        if run.fork_server is not None:
            self._send(run.fork_server, {"kill": run.name})
            self._health.kill(run.name)  # itself, should the fork server be stopped
            # Do not wait for the child's end: its jobs may be long.
            self._send(self._context_owner, {"close": run.gateway, "tags": run.tags})

    def _ended(self, run: Run, code: int, number: int) -> None:
        del self._runs[run.name]
        self._health.remove(run.name)
        shutil.rmtree(self._temporary(run), ignore_errors=True)
        self._send(self._context_owner, {"close": run.gateway, "tags": run.tags})
        if not self._runs:
            self._send(self._context_owner, {"tidy": True})
        if code or number:  # it may be Spark that has failed
            self._probe()
        log(f"{run.name}: ended with {f'signal {number}' if number else f'exit {code}'}")
        if not run.abandoned:
            run.client.send({"ended": {"code": code, "signal": number}})


def _is_open(fileobj: object) -> bool:
    return isinstance(fileobj, int) or fileobj.fileno() >= 0  # type: ignore[attr-defined]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemark.resident.server", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="where to listen")
    parser.add_argument("--master", default="local[2]", help="the Spark master")
    parser.add_argument(
        "--settings",
        choices=["-"],
        help="read resident.server_folder.Settings as a JSON object from standard input, instead of --master",
    )
    args = parser.parse_args(argv)
    settings = Settings.from_json(sys.stdin.read()) if args.settings else Settings(master=args.master)
    return Server(ServerFolder(args.socket), settings).serve()


if __name__ == "__main__":
    sys.exit(main())

"""What a server needs to run apps: JVM, fork servers and context owner; how they are started, watched and ended."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence

from tidemark.resident import jvm
from tidemark.resident.health import Health, Process
from tidemark.resident.protocol import Channel, Message, pair
from tidemark.resident.scratch import MARK, Scratch
from tidemark.resident.server_folder import ServerFolder, Settings

START_S = 300.0
"""From the start of the JVM until Spark is up, of a fork server until it has imported."""
GROWN_AT_MOST = 5
"""Second fork servers, each in place of one that failed."""
CONTEXT_OWNER, FIRST, SECOND, PROBE = (
    "the context owner",
    "the fork server",
    "the second fork server",
    "a job that reads nothing",
)


class Fatal(Exception):
    """The server cannot go on."""


class Helpers:
    """The processes below a server. What a run's process reports is for the subclass."""

    def __init__(self, place: ServerFolder, settings: Settings) -> None:
        self._place = place
        self._settings = settings
        self._selector = selectors.DefaultSelector()
        self._fork_servers: dict[Channel, set[str]] = {}  # ready ones, by age, with what they have imported
        self._first, self._first_end = pair()
        self._context_owner, self._context_owner_end = pair()
        self._second: Channel | None = None
        self._grown = 0
        self._gateways: list[Message] = []
        self._count = 0
        self._up = False
        self._scratch: Scratch | None = None
        self._jvm: subprocess.Popen[bytes] | None = None
        self._health = Health(settings.patience_s)
        self._probing = False

    def _run_started(self, name: str, pid: int) -> bool:
        """Whether there is such a run still."""
        raise NotImplementedError

    def _run_reports(self, name: str, message: Message) -> None:
        raise NotImplementedError

    def _runs_lost(self, fork_server: Channel) -> None:
        """A fork server has ended, and its children with it."""
        raise NotImplementedError

    def _start_helpers(self) -> None:
        self._scratch = Scratch.make(self._place.scratch)
        self._start_jvm(self._scratch)
        self._start_fork_server()

    def _end_helpers(self, *, grace_s: float) -> None:
        """End all of them, and remove their files."""
        for channel in (self._first, self._context_owner, self._second):
            if channel is not None:
                channel.close()
        if self._jvm is not None:
            jvm.stop(self._jvm, grace_s=grace_s)
        if self._scratch is not None:
            self._scratch.remove()

    def _look_after_all(self, runs: Collection[str]) -> None:
        """Ask everybody for a sign of life, and end who has failed; `runs` are under way.

        Raises Fatal where the server cannot go on.
        """
        for helper in [*self._fork_servers, *([self._context_owner] if self._up else [])]:
            self._send(helper, {"ping": True})
        if self._probing and not runs:  # else it may wait for their tasks
            self._health.expect(PROBE, once=True)
        else:
            self._health.remove(PROBE)
        for name, why in self._health.failed().items():
            log(why)
            if name not in runs and name != SECOND:
                raise Fatal(why)
            self._health.kill(name)  # its end is noticed and reported as any other
        if (runs or not self._up) and self._jvm is not None:
            for pid in self._health.end_stopped_workers(self._jvm.pid):
                log(f"worker {pid} was stopped for {self._settings.patience_s:.0f} s and is killed")

    def _send(self, helper: Channel, message: Message, fds: Sequence[int] = ()) -> None:
        if not helper.send(message, fds) and helper is not self._second:
            raise Fatal(f"a helper does not take the message {sorted(message)}")

    def _watch(self, channel: Channel | int, then: Callable[[], None]) -> None:
        self._selector.register(channel, selectors.EVENT_READ, then)

    def _start_jvm(self, scratch: Scratch) -> None:
        self._jvm = jvm.start(self._settings, scratch.path)
        self._health.add("the JVM", Process(self._jvm.pid, os.pidfd_open(self._jvm.pid)))
        self._health.expect(CONTEXT_OWNER, within_s=START_S)
        self._watch(os.pidfd_open(self._jvm.pid), self._jvm_ended)

    def _jvm_ended(self) -> None:
        raise Fatal("the JVM has ended")

    def _start_fork_server(self) -> None:
        end = self._first_end
        command = [sys.executable, "-m", "tidemark.resident.fork_server", str(end.fileno()), str(os.getpid())]
        command += self._settings.first
        scratch = str(self._scratch.path) if self._scratch else ""
        process = subprocess.Popen(
            command, pass_fds=[end.fileno()], stdin=subprocess.DEVNULL, env={**os.environ, MARK: scratch}
        )
        end.close()
        self._fork_server = process
        self._health.add(FIRST, Process(process.pid, os.pidfd_open(process.pid)))
        self._health.expect(FIRST, within_s=START_S)
        self._watch(self._first, lambda: self._from_fork_server(self._first))

    def _start_context_owner(self) -> None:
        assert self._scratch is not None
        connection = str(jvm.connection_file(self._scratch.path))
        self._send(self._first, {"context_owner": connection}, [self._context_owner_end.fileno()])
        self._context_owner_end.close()
        self._watch(self._context_owner, self._from_context_owner)

    def _grow(self) -> None:
        """Let a second fork server import what is slow, beside the runs of the first."""
        self._grown += 1
        ours, theirs = pair()
        self._second = ours
        self._watch(ours, lambda: self._from_fork_server(ours))
        self._send(self._first, {"grow": list(self._settings.later)}, [theirs.fileno()])
        theirs.close()

    def _from_fork_server(self, channel: Channel) -> None:
        got = channel.receive()
        if got is None:
            self._lost_fork_server(channel)
            return
        name = FIRST if channel is self._first else SECOND
        match got[0]:
            case {"pong": _}:
                self._health.expect(name)
            case {"ready": list(modules)}:
                self._fork_servers[channel] = set(modules)
                self._health.expect(name)
                if channel is self._first:
                    self._start_context_owner()
                log(f"imported {', '.join(modules)}")
            case {"forked": int(pid), "run": str(forked)} if got[1]:
                self._forked(forked, Process(pid, got[1][0]))
            case {"run": str(run)} as message:
                self._run_reports(run, message)

    def _forked(self, name: str, process: Process) -> None:
        if name not in (CONTEXT_OWNER, SECOND) and not self._run_started(name, process.pid):
            os.close(process.pidfd)
            return
        self._health.add(name, process)
        if name == SECOND:
            self._health.expect(SECOND, within_s=START_S)

    def _lost_fork_server(self, channel: Channel) -> None:
        if channel is self._first:
            raise Fatal("the fork server has ended")
        log("the second fork server has ended; the first serves on")
        self._health.remove(SECOND)
        self._selector.unregister(channel)
        channel.close()
        self._fork_servers.pop(channel, None)
        self._second = None
        self._runs_lost(channel)
        if self._grown < GROWN_AT_MOST:
            self._grow()

    def _from_context_owner(self) -> None:
        got = self._context_owner.receive()
        if got is None:
            raise Fatal("the context owner has ended")
        match got[0]:
            case {"up": _}:
                self._up = True
                self._health.expect(CONTEXT_OWNER)
                if self._scratch is not None:
                    for read in (jvm.properties_file(self._scratch.path), jvm.connection_file(self._scratch.path)):
                        read.unlink(missing_ok=True)  # by whom it was for
                log("Spark is up")
                self._open_gateway()
                if self._settings.later:
                    self._grow()
            case {"gateway": int(), "port": int(), "secret": str()} as gateway:
                self._gateways.append(gateway)
            case {"pong": False}:
                raise Fatal("the SparkContext, or the executor in it, has been stopped")
            case {"pong": True}:
                self._health.expect(CONTEXT_OWNER)
            case {"probed": True}:
                self._probing = False
            case {"probed": False}:
                raise Fatal("Spark runs no job any more")

    def _probe(self) -> None:
        """Find out whether Spark still runs a job, unless that is being found out."""
        if not self._probing:
            self._probing = True
            self._send(self._context_owner, {"probe": True})

    def _open_gateway(self) -> None:
        self._count += 1
        self._send(self._context_owner, {"open": self._count})


def log(text: str) -> None:
    """A line of the server's log."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{now} resident[{os.getpid()}] {text}", file=sys.stderr, flush=True)

"""The fork server: a pre-imported Python that forks, and does nothing else.

It has one thread, no connection to the JVM and no shared memory, so that a fork of it inherits nothing that could be
shared by mistake: no lock that a thread has, and none that a killed sibling has. A
second fork server grows out of the first to import what is slow, while the first one serves.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from tidemark.resident import child, context_owner
from tidemark.resident.guard import die_with_parent
from tidemark.resident.protocol import Channel, Message, close_all


class ForkServer:
    """Forks on request and reports each child's pid and end."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._children: dict[int, tuple[int, str]] = {}  # pidfd -> pid, run or name of a helper

    def serve(self) -> None:
        """Until the server closes the channel, which is the end of this process and with it of its children."""
        while True:
            for key, _ in self._selector.select():
                if key.fd in self._children:
                    self._reap(key.fd)
                    continue
                got = self._channel.receive()
                if got is None:
                    return
                self._do(*got)

    def _do(self, message: Message, fds: list[int]) -> None:
        match message:
            case {"run": str(run)}:
                self._fork(lambda server: child.live(message, fds, server), run)
            case {"kill": str(run)}:
                for pid, name in self._children.values():
                    if name == run:
                        _kill(pid)
            case {"context_owner": str(connection)}:
                self._fork(lambda server: _keep(server, fds[0], Path(connection)), "the context owner")
            case {"grow": list(modules)}:
                self._fork(lambda server: _grow(server, fds[0], modules), "the second fork server")
            case {"ping": _}:
                self._channel.send({"pong": True})
        close_all(fds)

    def _fork(self, life: Callable[[Channel], int | None], run: str) -> None:
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            pidfd = os.pidfd_open(pid)
            self._children[pidfd] = (pid, run)
            self._selector.register(pidfd, selectors.EVENT_READ)
            self._channel.send({"forked": pid, "run": run}, [pidfd])
            return
        code = 1
        try:
            os.setsid()
            die_with_parent(parent)
            self._selector.close()
            close_all(self._children)
            code = life(self._channel) or 0
        except BaseException:
            traceback.print_exc()
        finally:
            _leave(code)

    def _reap(self, pidfd: int) -> None:
        pid, run = self._children.pop(pidfd)
        self._selector.unregister(pidfd)
        os.close(pidfd)
        _kill(pid)  # not yet reaped, so the number is still its own; what it has started goes with it
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._channel.send({"run": run, "code": max(code, 0), "signal": max(-code, 0)})


def _kill(pid: int) -> None:
    for end in (os.kill, os.killpg):  # the group exists a moment after the process
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _leave(code: int) -> NoReturn:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
        logging.shutdown()
    os._exit(code)


def _keep(server: Channel, fd: int, connection: Path) -> None:
    server.close()
    context_owner.keep(Channel(socket.socket(fileno=fd)), connection)


def _grow(server: Channel, fd: int, modules: Sequence[str]) -> None:
    server.close()
    _serve(fd, modules)


def _serve(fd: int, modules: Sequence[str]) -> None:
    """Import, report, serve: the life of a fork server."""
    channel = Channel(socket.socket(fileno=fd))
    imported = [m for m in modules if _import(m)]
    if threading.active_count() > 1:  # a fork has but one, and would wait for ever for what the others hold
        print(f"fork server: an import has started threads: {threading.enumerate()}", file=sys.stderr, flush=True)
    if shared := shared_memory():
        print(f"fork server: an import has made memory that forks share: {shared}", file=sys.stderr, flush=True)
    gc.collect()
    gc.freeze()  # so that a child's collector does not touch, and thereby copy, every inherited page
    channel.send({"ready": imported})
    ForkServer(channel).serve()


def shared_memory() -> list[str]:
    """The memory that this process shares with its forks: a semaphore in it that one of them has when it is killed is
    locked for all others, for ever."""
    mappings = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    return [" ".join(fields[5:]) or "without a name" for fields in mappings if fields[1].startswith("rw-s")]


def _import(module: str) -> bool:
    try:
        importlib.import_module(module)
    except Exception as e:  # a child that needs it will say so in its own log
        print(f"fork server: cannot import {module}: {e!r}", file=sys.stderr, flush=True)
        return False
    return True


if __name__ == "__main__":
    die_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Run as a script this module is __main__; the imported one is what children see.
    importlib.import_module("tidemark.resident.fork_server")._serve(int(sys.argv[1]), sys.argv[3:])

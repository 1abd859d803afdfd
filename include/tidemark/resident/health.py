"""Who of the server's processes has failed: fell silent, or has been stopped, for longer than it has patience."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.resident.watch import OwnTime, Stopped


@dataclass
class Process:
    """A process by number and by a descriptor that is nobody else's, whatever becomes of the number."""

    pid: int
    pidfd: int

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


class Health:
    """Keeps processes by name, and until when each must be heard of."""

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self.now = OwnTime()
        self._processes: dict[str, Process] = {}
        self._due: dict[str, float] = {}
        self._stopped = Stopped(patience_s)
        self._stopped_workers = Stopped(patience_s)

    def add(self, name: str, process: Process) -> None:
        """Keep it, and its descriptor, until it is removed; one of the same name is replaced."""
        self.remove(name)
        self._processes[name] = process

    def remove(self, name: str) -> None:
        self._due.pop(name, None)
        if process := self._processes.pop(name, None):
            os.close(process.pidfd)

    def kill(self, name: str) -> None:
        if process := self._processes.get(name):
            process.kill()

    def expect(self, name: str, *, within_s: float | None = None, once: bool = False) -> None:
        """The next sign of life is due within the patience, or so many seconds; `once`: unless one is due already."""
        if not once or name not in self._due:
            self._due[name] = self.now() + (within_s or self.patience_s)

    def failed(self) -> Mapping[str, str]:
        """The names of those that have failed, with what is wrong."""
        now = self.now()
        why = {name: f"{name} did not answer in time" for name, due in self._due.items() if now > due}
        stopped = self._stopped.look([p.pid for p in self._processes.values()], now)
        for name, process in self._processes.items():
            if process.pid in stopped:
                why[name] = f"{name} (process {process.pid}) has been stopped for {self.patience_s:.0f} s"
        return why

    def end_stopped_workers(self, jvm: int) -> set[int]:
        """Kill Spark's own Python processes that have been stopped too long: a task would wait for one for ever."""
        import psutil

        with contextlib.suppress(psutil.Error):
            workers = {p.pid: p for p in psutil.Process(jvm).children(recursive=True)}
            stopped = self._stopped_workers.look(workers, self.now())
            for pid in stopped:
                with contextlib.suppress(psutil.Error):
                    workers[pid].kill()
            return stopped
        return set()

"""Small work of a task: its step runs in a child of the task's process, where no Spark is started for it.

A child, not the process itself, so that a task that is marked failed, times out or dies ends the step at once, wherever
it is: by SIGKILL, as a Spark app ends. What it had not committed by then it does not commit, and a later attempt fences
it (0071). The environment and the memory of the step are the child's, too.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import tidemark
from tidemark.airflow.launch import ResultLine, settle
from tidemark.errors import RETRY_SAFE
from tidemark.jobs import small_work
from tidemark.resident.guard import die_with_parent
from tidemark.resident.watch import OwnTime, Stopped, patience_s

LOOK_S = 1.0
"""Seconds between two looks at whether the child is stopped."""


@dataclass(frozen=True)
class Work:
    """One step to run: `argv` as its Spark app takes it, with what the child's environment has beside the task's
    (`variables`), and how many tasks Spark would run at once (`parallelism`; None leaves all that reads data to
    Spark)."""

    step: str
    argv: tuple[str, ...]
    variables: Mapping[str, str]
    parallelism: int | None


class SmallWork:
    """The child of one task.

    A process with one thread is forked, which takes a hundredth of a second. In one with more, as under `dag.test()` in
    a notebook, a lock might be another thread's for ever: there a new interpreter is started instead.
    """

    def __init__(self, note: Callable[[str], object]) -> None:
        self._note = note
        self._pid: int | None = None
        self._killed = False

    def run(self, work: Work) -> dict[str, Any] | None:
        """Run a step to its end.

        Returns:
            Its result; None where Spark is needed, and nothing was committed.

        Raises:
            AppRefused: It failed, and a retry cannot help.
            AirflowException: It failed otherwise, or was ended.
        """
        seen = ResultLine()
        reader, writer = os.pipe()
        try:
            try:
                start = self._fork if _has_one_thread() else self._spawn
                self._pid = start(work, writer)
            finally:
                os.close(writer)
            if self._killed:  # before its pid was known
                self.kill()
            for line in self._lines(reader):
                if not seen.see(line):
                    self._note(line)
        except BaseException:
            self.kill()
            raise
        finally:
            os.close(reader)
            code = self._reaped()
        result = settle(work.step, max(code, 0), max(-code, 0), seen)
        return None if small_work.NEEDS_SPARK in result else result

    def kill(self) -> None:
        """End the child, and wait until it has ended. It is reaped by whoever runs it."""
        self._killed = True
        if (pid := self._pid) is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    def _reaped(self) -> int:
        """The child's exit code, once it has ended; of a signal its number, negative. 0 where none was started."""
        if (pid := self._pid) is None:
            return 0
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._pid = None  # from now on the number may be another's
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _lines(self, reader: int) -> Iterator[str]:
        """What the child prints, line by line. A child that is stopped for too long is ended."""
        patience = patience_s(os.environ)
        now, stopped, rest = OwnTime(), Stopped(patience), b""
        while True:
            if select.select([reader], [], [], LOOK_S)[0]:
                data = os.read(reader, 1 << 16)
                *lines, rest = (rest + data).split(b"\n")
                yield from (line.decode(errors="replace") for line in (lines if data else [rest] if rest else []))
                if not data:
                    return
            if self._pid is not None and stopped.look([self._pid], now()):
                self._note(f"the step was stopped for {patience:.0f} s: ending it")
                self.kill()

    def _fork(self, work: Work, writer: int) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        parent, blocked = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        try:
            if pid := os.fork():
                return pid
            _live(work, writer, parent, {*blocked})
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _spawn(self, work: Work, writer: int) -> int:
        path = os.pathsep.join(filter(None, [str(Path(tidemark.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
        words = ["-m", small_work.__name__, str(os.getpid()), str(work.parallelism or ""), work.step, *work.argv]
        return os.posix_spawn(
            sys.executable,
            [sys.executable, *words],
            {**os.environ, "PYTHONPATH": path, **work.variables},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                *((os.POSIX_SPAWN_DUP2, writer, target) for target in (1, 2)),
            ],
            setsigmask=(),
            setsigdef=(signal.SIGTERM, signal.SIGINT),
        )


_PARENTS: list[object] = []
"""In a child, what it replaced: objects that would close descriptors when nobody has them any more."""


def _has_one_thread() -> bool:
    """Whether this process has one thread, those of native libraries counted; False where nobody says."""
    try:
        return len([*Path("/proc/self/task").iterdir()]) == 1
    except OSError:
        return False


def _live(work: Work, writer: int, parent: int, blocked: set[int]) -> NoReturn:
    """The life of a fork. It leaves by `os._exit` only: exit handlers and open files are its parent's."""
    code = RETRY_SAFE
    try:
        gc.freeze()  # what the parent made is never collected here, as its finalizers are the parent's
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        die_with_parent(parent)
        _redirect(writer)
        os.environ.update(work.variables)
        code = small_work.main(work.step, work.argv, work.parallelism)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # nothing may lead back into the parent's code
            os._exit(code)


def _redirect(writer: int) -> None:
    """Print into the pipe, and into nothing else that the parent has open, as its connection to Airflow's supervisor.

    Descriptors keep their numbers: an object of the parent that closes its own closes nothing of the child's.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for target in (1, 2):
        os.dup2(writer, target)
    for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if descriptor not in (1, 2, null):
            with contextlib.suppress(OSError):  # the one of the listing is closed by now
                os.fstat(descriptor)
                os.dup2(null, descriptor)
    _PARENTS.extend((sys.stdin, sys.stdout, sys.stderr, logging.root.handlers))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    logging.root.handlers = [logging.StreamHandler(sys.stderr)]

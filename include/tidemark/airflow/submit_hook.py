"""spark-submit such that its result is read and its end is complete."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import psutil
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from tidemark.airflow.launch import ResultLine
from tidemark.resident.guard import request_death_signal

KILL_WAIT_S = 10.0


class AppSubmitHook(SparkSubmitHook):
    """Keeps the app's result line and exit code; `on_kill` ends the whole process tree, not only the JVM."""

    seen: ResultLine

    @classmethod
    def of(cls, stock: SparkSubmitHook) -> AppSubmitHook:
        """The same hook with our manners: the stock operator knows how to make it out of a score of arguments."""
        hook = cls.__new__(cls)
        hook.__dict__.update(stock.__dict__)
        hook.seen = ResultLine()
        return hook

    @property
    def exit_code(self) -> int | None:
        """The exit code of spark-submit, which is the app's; None if it has not run to its end."""
        return self._submit_sp.returncode if self._submit_sp else None

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Run to the end. Should this process die, the kernel ends the JVM, and the driver's guard the driver."""
        if threading.current_thread() is threading.main_thread():  # the kernel ties the signal to the forking thread
            kwargs["preexec_fn"] = request_death_signal
        submitted: str | None = super().submit(application, stdin=subprocess.DEVNULL, **kwargs)
        return submitted

    def on_kill(self) -> None:
        if self._submit_sp is not None and self._submit_sp.poll() is None:
            self.log.info("Ending spark-submit %s with everything it started", self._submit_sp.pid)
            kill_tree(self._submit_sp.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._submit_sp.wait(KILL_WAIT_S)
        super().on_kill()

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._watched(itr))

    def _watched(self, lines: Iterator[Any]) -> Iterator[Any]:
        for line in lines:
            self.seen.see(line)
            yield line


def kill_tree(pid: int, *, wait_s: float = KILL_WAIT_S) -> None:
    """SIGKILL a process and all its descendants. The driver is a child of the JVM, its workers are the JVM's too.

    All are stopped before the first is killed: a stopped process cannot start another, and the children of a killed one
    could no longer be told from strangers.
    """
    try:
        root = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    tree: dict[int, psutil.Process] = {}
    found = [root]
    while found:
        for process in found:
            tree[process.pid] = process
            with contextlib.suppress(psutil.Error):
                process.suspend()
        found = [c for c in _children(root) if c.pid not in tree]
    for process in tree.values():
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs([p for p in tree.values() if p.pid != pid], timeout=wait_s)


def _children(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except psutil.Error:
        return []

"""spark-submit such that its result is read, its end is complete, and nobody else can see into it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from tidemark.airflow.launch import ResultLine
from tidemark.resident.confined import private_conf, private_environment, write_properties
from tidemark.resident.guard import request_death_signal
from tidemark.resident.scratch import Scratch
from tidemark.resident.server_folder import ServerFolder
from tidemark.resident.watch import OwnTime, Stopped, patience_s

KILL_WAIT_S = 10.0
_LOOK_S = 1.0


class AppSubmitHook(SparkSubmitHook):
    """Keeps the app's result line and exit code; `on_kill` ends the whole process tree, not only the JVM.

    Settings reach spark-submit in a file that only this user can read and that is removed afterwards, not in the
    command line, which every user of the machine can read. A local Spark listens on the loopback interface only and
    is authenticated. Temporary files are below one private folder, removed at the end, or by the next who comes by.
    """

    seen: ResultLine
    _scratch: Scratch | None = None

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
        location = ServerFolder.default(os.environ)
        self._scratch = scratch = location.submit_scratch()
        if threading.current_thread() is threading.main_thread():  # the kernel ties the signal to the forking thread
            kwargs["preexec_fn"] = request_death_signal
        over = threading.Event()
        watch = threading.Thread(target=self._end_if_stopped, args=[over], daemon=True)
        watch.start()
        try:
            submitted: str | None = super().submit(application, stdin=subprocess.DEVNULL, **kwargs)
        finally:
            over.set()
            watch.join()
            scratch.remove()
            location.leave()
        return submitted

    def on_kill(self) -> None:
        if self._submit_sp is not None and self._submit_sp.poll() is None:
            self.log.info("Ending spark-submit %s with everything it started", self._submit_sp.pid)
            kill_tree(self._submit_sp.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._submit_sp.wait(KILL_WAIT_S)
        super().on_kill()

    def _build_spark_common_args(self) -> list[str]:
        """The stock arguments, but all settings in a file, and what keeps a Spark to itself."""
        assert self._scratch is not None, "submit() makes it"
        scratch, master = self._scratch.path, self._connection["master"]
        conf = private_conf(master)
        args, before, rest = [], "", iter(super()._build_spark_common_args())
        for arg in rest:
            if arg == "--conf":
                key, _, value = next(rest).partition("=")
                conf[key] = value
            elif arg == "--properties-file":
                before = Path(next(rest)).read_text(encoding="utf-8")
            else:
                args.append(arg)
        asked = self._env or {}  # by the stock arguments, for spark-submit itself
        added = private_environment(master, scratch, {**os.environ, **asked})
        self._env = {**asked, **added, **{name: asked[name] for name in ("SPARK_LOCAL_IP", "TMPDIR") if name in asked}}
        file = scratch / "spark.properties"
        write_properties(file, conf, before=before)
        defaults = [] if self._properties_file else ["--load-spark-defaults"]  # as without a file
        return [*args, "--properties-file", str(file), *defaults]

    def _end_if_stopped(self, over: threading.Event) -> None:
        """Whoever is stopped in the midst of an app would be waited for without end."""
        patience = patience_s(os.environ)
        now, stopped = OwnTime(), Stopped(patience)
        while not over.wait(_LOOK_S):
            if self._submit_sp is None:
                continue
            with contextlib.suppress(psutil.Error):
                root = psutil.Process(self._submit_sp.pid)
                if found := stopped.look([root.pid, *(p.pid for p in root.children(recursive=True))], now()):
                    self.log.warning("Process %s was stopped for %s s: ending the app", min(found), patience)
                    kill_tree(root.pid)

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._watched(itr))

    def _watched(self, lines: Iterator[Any]) -> Iterator[Any]:
        for line in lines:
            self.seen.see(line)
            yield line


def kill_tree(pid: int, *, wait_s: float = KILL_WAIT_S) -> None:
    """SIGKILL a process and all its descendants. The driver is a child of the JVM, its workers are the JVM's too.

    All are stopped before the first is killed: a stopped process cannot start another, and the children of a killed one
    could no longer be distinguished from strangers.
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

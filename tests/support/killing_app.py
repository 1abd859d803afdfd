"""The app of a step whose process is hit at a chosen point: copied as spark_apps/<step>.py of a test's project folder.
A child of a task that does small work calls `prepare` itself.

TIDEMARK_KILLING names a folder. If it holds `plan.json`, {"step", "point", "action"}, the run of that step is hit at:

    planned       the plan is made, the attempt's fence is committed (a first try has none: so these are second ones)
    first file    the first data file of the step is there, no other is
    last file     every data file is there, their table is not
    uncommitted   everything is written, the commit's create is next
    committed     the create took effect, nobody got the answer

by `kill` (SIGKILL of the driver), `stop` (SIGSTOP of it) or `wait` (until `go` is there). Whoever hits the driver
takes the plan away first and leaves `hit` with the driver's pid: one plan is one hit. Without a plan it is the ordinary
app. What executors run is defined here, in `__main__`, so that it travels to them by value.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FINAL = {"ingest": "ingested", "seal": "sealed", "drain": "drained", "compact": "compacted", "gate": "certified"}
"""The change each step commits."""
SMALL_TASK = 16_384
"""Rows of a task, in place of a million: one row group each, so that small data is cut into several tasks."""


class HittingStore:
    """A store that hits the driver at the plan's point; in the driver or, for the first file, in an executor."""

    def __init__(self, inner: Any, folder: str, plan: dict[str, str], driver: int) -> None:
        self._inner = inner
        self._folder = folder
        self._plan = plan
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, key: str, data: bytes) -> None:
        kind = json.loads(data)["change"]["kind"] if key.startswith("versions/") else None
        final = kind is not None and kind == FINAL[self._plan["step"]]
        if "/parts-" in key:
            self._reach("last file")
        if final:
            self._reach("uncommitted")
        self._inner.create(key, data)
        if kind == "attempted":
            self._reach("planned")
        if final:
            self._reach("committed")

    @contextmanager
    def open_output(self, key: str) -> Iterator[Any]:
        if self._plan["point"] != "first file":
            with self._inner.open_output(key) as stream:
                yield stream
            return
        try:
            (Path(self._folder) / "first").touch(exist_ok=False)
        except FileExistsError:
            self._wait_for_the_first_file()
        with self._inner.open_output(key) as stream:
            yield stream
        self._reach("first file")

    def _wait_for_the_first_file(self) -> None:
        """Another task writes it; nothing is written after it by a driver that is killed for it."""
        folder = Path(self._folder)
        while _lives(self._driver):
            if self._plan["action"] != "kill" and not (folder / "plan.json").exists():
                return
            time.sleep(0.01)
        raise OSError("the driver is gone")

    def _reach(self, point: str) -> None:
        if self._plan["point"] != point:
            return
        folder = Path(self._folder)
        try:
            (folder / "plan.json").rename(folder / "plan.done")
        except FileNotFoundError:
            return
        (folder / "hit.part").write_text(str(self._driver))
        (folder / "hit.part").rename(folder / "hit")
        if self._plan["action"] == "wait":
            while _lives(self._driver) and not (folder / "go").exists():
                time.sleep(0.01)
        else:
            os.kill(self._driver, signal.SIGKILL if self._plan["action"] == "kill" else signal.SIGSTOP)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def hit(folder: str, plan: dict[str, str]) -> None:
    """Let every store of the run, here and in its executors, be a HittingStore."""
    from tidemark.jobs import job
    from tidemark.jobs.steps import compact, drain
    from tidemark.storage import open_store
    from tidemark.storage.sidecars import parts_table

    driver = os.getpid()

    def opened(url: str) -> Any:
        return HittingStore(open_store(url), folder, plan, driver)

    job.open_store = opened
    drain.TASK_ROWS = compact.TASK_ROWS = SMALL_TASK
    parts_table.SMALL = 0  # or there was no moment between the files and the commit
    if plan["point"] == "first file":
        from tidemark.spark import runner

        runner.open_store = opened


def prepare(step: str, argv: Sequence[str]) -> None:
    """Let this process be hit, where the plan is about its step."""
    folder = os.environ["TIDEMARK_KILLING"]
    try:
        plan = json.loads((Path(folder) / "plan.json").read_text())
    except FileNotFoundError:
        plan = {"step": ""}
    if plan["step"] == step and plan.get("collection", "") in ("", argv[argv.index("--collection") + 1]):
        print(f"this run will be hit: {plan}", file=sys.stderr)
        hit(folder, plan)


def main(step: str, argv: list[str]) -> int:
    from tidemark.jobs import app

    prepare(step, argv)
    return app.main(step, argv)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[0]).stem, sys.argv[1:]))

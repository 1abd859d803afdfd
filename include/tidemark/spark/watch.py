"""How the jobs of a Spark session get on, said on stderr, where the log of a task of Airflow gets its lines from.

    Spark's page: http://driver:4040
    task 37 of 200, about 12.3 M rows/s

Nothing is said of jobs of less than SOON_S. A job on a cluster that gets no executor says so, with what the master of a
standalone cluster knows: who holds its cores, and what is free.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext

from tidemark.resident.confined import is_local
from tidemark.resident.standalone import NoAnswer, ask, is_standalone
from tidemark.spark.no_executors import advice

LOOK_S = 1.0
SOON_S = 2.0
"""Jobs of less are not spoken of."""
PACE_S = 5.0
"""Between two lines of progress."""
WITHOUT_EXECUTOR_S = 15.0
"""So long a job waits for its first executor before that is said."""
REPEAT_S = 60.0
"""After that it is said again."""


@dataclass
class Reading:
    """What is read by the jobs that run now: rows, bytes and files of all tasks together, as far as that is known."""

    rows: int = 0
    bytes: int = 0
    files: int = 0


_reading = Reading()


@contextmanager
def reading(read: Reading) -> Iterator[None]:
    """Within, jobs of this process read so much: lines of progress say how many files, and rows in a second."""
    global _reading
    _reading = read
    try:
        yield
    finally:
        _reading = Reading()


@dataclass(frozen=True)
class Tasks:
    """The stages that are at work: their tasks, of these those that are done, and about how many run."""

    all: int
    done: int
    running: int


def progress_line(tasks: Tasks, seconds: float, read: Reading) -> str:
    """A line about tasks under way for so long.

    >>> progress_line(Tasks(200, 37, 4), 10.0, Reading(rows=600_000_000))
    'task 37 of 200, about 11.1 M rows/s'
    >>> progress_line(Tasks(8, 0, 0), 3.0, Reading())
    'task 0 of 8, none running: they wait for a free core'
    >>> progress_line(Tasks(13, 2, 2), 40.0, Reading(rows=1_000_000, files=100_000))
    'task 2 of 13, about 15,385 of 100,000 files, about 3.8 k rows/s'
    """
    if not tasks.running and not tasks.done:
        return f"task 0 of {tasks.all}, none running: they wait for a free core"
    line = f"task {tasks.done} of {tasks.all}"
    if tasks.done and read.files > tasks.all:
        line += f", about {round(read.files * tasks.done / tasks.all):,} of {read.files:,} files"
    share = tasks.done / tasks.all / max(seconds, 0.001)
    if share and read.rows:
        return f"{line}, about {_amount(read.rows * share)} rows/s"
    if share and read.bytes:
        return f"{line}, about {_amount(read.bytes * share)}B/s"
    return line


def _amount(number: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f} "


@dataclass
class Watch:
    """Looks at the jobs of one SparkContext, those of one group if the thread that made it had set one."""

    context: Any
    say: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    group: str | None = None
    _since: float | None = None
    _said_at: float = 0.0
    _last: str = ""
    _alone_since: float | None = None
    _alone_said_at: float | None = None
    _page_said: bool = False
    _jobs: set[int] = field(default_factory=set)

    def look(self) -> None:
        """Say what is due now."""
        now, tracker = self.now(), self.context._jsc.sc().statusTracker()
        jobs = set(tracker.getActiveJobIds())
        if jobs and self.group is not None:
            jobs &= set(tracker.getJobIdsForGroup(self.group))
        if not jobs & self._jobs:  # others than those before, or none
            self._since = self._alone_since = self._alone_said_at = None
            self._last = ""
        self._jobs = jobs
        if not jobs:
            return
        self._since = now if self._since is None else self._since
        if not is_local(self.context.master) and len(tracker.getExecutorInfos()) <= 1:  # the driver is one of them
            self._without_executors(now)
        else:
            self._alone_since = self._alone_said_at = None
            self._progress(now, _tasks(tracker, jobs))

    def _progress(self, now: float, tasks: Tasks | None) -> None:
        assert self._since is not None
        if tasks is None or now - self._since < SOON_S or (self._last and now - self._said_at < PACE_S):
            return
        state = f"{tasks.done} of {tasks.all}"
        if state == self._last:
            return
        self._say_page()
        self.say(progress_line(tasks, now - self._since, _reading))
        self._last, self._said_at = state, now

    def _without_executors(self, now: float) -> None:
        self._alone_since = now if self._alone_since is None else self._alone_since
        waited = now - self._alone_since
        due = WITHOUT_EXECUTOR_S if self._alone_said_at is None else self._alone_said_at + REPEAT_S - self._alone_since
        if waited < due:
            return
        self._alone_said_at = now
        self._say_page()
        self.say(f"no executor for {waited:.0f} s: {self._what_is_known()}")

    def _what_is_known(self) -> str:
        master, conf = self.context.master, self.context.getConf()
        state, why = None, ""
        if is_standalone(master):
            try:
                jvm = self.context._jvm
                state = ask(jvm, master, environment=jvm.org.apache.spark.SparkEnv.get().rpcEnv())
            except NoAnswer as error:
                why = str(error)
        return advice(master, dict(conf.getAll()), state, why, self.context.applicationId)

    def _say_page(self) -> None:
        page = self.context.uiWebUrl
        if page and not self._page_said:
            self.say(f"Spark's page: {page}")
        self._page_said = True


def _tasks(tracker: Any, jobs: set[int]) -> Tasks | None:
    """Of the stages of these jobs that have begun and have not ended; of those to come while none has."""
    stages = {}
    for job in jobs:
        info = tracker.getJobInfo(job)
        for stage in info.get().stageIds() if info.isDefined() else ():
            found = tracker.getStageInfo(stage)
            if found.isDefined():
                info_of = found.get()
                stages[stage] = Tasks(info_of.numTasks(), info_of.numCompletedTasks(), info_of.numActiveTasks())
    begun = [tasks for tasks in stages.values() if tasks.running or 0 < tasks.done < tasks.all]
    chosen = begun or [tasks for tasks in stages.values() if tasks.done < tasks.all][:1]
    if not chosen:
        return None
    return Tasks(*(sum(getattr(tasks, name) for tasks in chosen) for name in ("all", "done", "running")))


_watched: SparkContext | None = None


def watch(context: SparkContext) -> None:
    """Say on stderr how the jobs of this context get on, from now on until it is stopped; once for each context."""
    global _watched
    if _watched is context:
        return
    _watched = context
    group = context.getLocalProperty("spark.jobGroup.id")
    watching = Watch(context, lambda line: print(line, file=sys.stderr, flush=True), group=group)
    over = threading.Event()
    looking = threading.Thread(target=_look_on, args=[watching, over], name="tidemark watches Spark", daemon=True)
    looking.start()
    # Before the JVM is let go of: py4j would write of a call that it no longer answers.
    atexit.register(_end, over, looking)


def _end(over: threading.Event, looking: threading.Thread) -> None:
    over.set()
    looking.join(LOOK_S)


def _look_on(watching: Watch, over: threading.Event) -> None:
    while not over.wait(LOOK_S) and SparkContext._active_spark_context is watching.context:
        try:
            watching.look()
        except Exception:
            # What is wrong with Spark is for whoever waits for its answer to say.
            over.wait(PACE_S)

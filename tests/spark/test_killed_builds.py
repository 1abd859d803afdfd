"""Windows made by executors that are killed during their work, and by the next run: every window is there once, and
nothing of the first try is left. What is expected is computed straight from the rows."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.spark.support import DAY, HOUR, Made, day_of, into_the_trace
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import UPSERT, Row, land, row
from tests.spark.test_sessions import deriving
from tests.spark.ways import by_executors
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.correct import correct
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding, Tumbling
from tidemark.model.window.windows import Windows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

APP = Path(__file__).parent / "apps" / "dying.py"
GONE_WITHIN_S = 60.0
AGGREGATES = (Aggregate("n", Function.COUNT), Aggregate("most", Function.MAX, "whole"))
BUILDS = {
    "worker": Windows(("shop",), "sold", Tumbling(DAY // 4), AGGREGATES, early=True),
    "jvm": Windows(("kind",), "sold", Sliding(HOUR // 4), AGGREGATES, early=True),
    "driver": Windows(("shop",), "sold", Session(HOUR // 4), AGGREGATES, early=True),
}
"""By who is killed: by the input's key, or through a shuffle."""
ENDS = {"worker": 75, "jvm": 75, "driver": -9}
"""How the driver ends: with the exit code that says that it may be run again, or killed itself."""
FIRST, REFRESHED = set(BUILDS), {"worker", "driver"}
"""Whose first builds are killed, and whose refreshes, where executors make these, too."""


def sales() -> list[Row]:
    chance, begins = random.Random(7), day_of(1).lower
    return [
        row(number, shop="abcdef"[number % 6], kind=number % 5, whole=number, sold=begins + chance.randrange(2 * DAY))
        for number in range(300)
    ]


def expected(rows: list[Row], windows: Windows) -> Counter[tuple[Any, ...]]:
    """Windows as (by, start, end, n, most)."""
    (by,), found = windows.by, Counter[tuple[Any, ...]]()
    each = defaultdict(list)
    for one in rows:
        each[one[by]].append((one["sold"], one["whole"]))
    for value, pairs in each.items():
        for start, end, most in _windows(sorted(pairs), windows.kind):
            found[value, start, end, len(most), max(most)] += 1
    return found


def _windows(pairs: list[tuple[int, int]], kind: Any) -> list[tuple[int, int, list[int]]]:
    by_start = defaultdict(list)
    if isinstance(kind, Tumbling):
        for at, whole in pairs:
            by_start[at // kind.size * kind.size].append(whole)
        return [(start, start + kind.size, most) for start, most in by_start.items()]
    if isinstance(kind, Sliding):
        starts = {at - kind.size for at, _ in pairs} | {at + 1 for at, _ in pairs}
        each = ((start, [whole for at, whole in pairs if start <= at <= start + kind.size]) for start in starts)
        return [(start, start + kind.size, most) for start, most in each if most]
    found: list[tuple[int, int, list[int]]] = []
    for at, whole in pairs:
        if found and at <= found[-1][1]:
            found[-1] = (found[-1][0], at + kind.gap, [*found[-1][2], whole])
        else:
            found.append((at, at + kind.gap, [whole]))
    return found


def current_windows(one: Deriving) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for (by, start, end, n, most), times in one.rows().items():
        found[by, *(round(at.timestamp() * 1_000_000) for at in (start, end)), n, most] += times
    return found


def killed(who: str, made: Made, marks: Path) -> tuple[int, str]:
    """How a driver of its own ends, and its last line; nothing that it started is left."""
    words = [sys.executable, str(APP), who, str(made.root), who, str(marks)]
    env = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        said, _ = process.communicate(timeout=200)
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := _of_session(process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    return process.returncode, said


def _of_session(number: int) -> list[int]:
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == number and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except (ProcessLookupError, psutil.Error):
            continue
    return found


def files(made: Made, name: str) -> set[Path]:
    """What is there of the data of a collection, half-written files too."""
    return {path for path in (made.root / name / "data").rglob("*") if path.is_file()}


@pytest.mark.parametrize("who", BUILDS)
def test_what_was_killed_is_made_by_the_next_one(spark: Any, tmp_path: Path, who: str) -> None:
    """A first build, or what changes reach."""
    windows, made, rows = BUILDS[who], Made(tmp_path, UPSERT), sales()
    land(made, 1, rows)
    one = deriving(made, spark, who, windows)
    if who in FIRST:
        killed_and_made(one, made, who, tmp_path / "built")
    else:
        one.ungated()
    assert current_windows(one) == expected(rows, windows)
    if who in REFRESHED:
        changed = {n: rows[n] | {"whole": 1000 - n, "sold": rows[-n]["sold"]} for n in range(5, 300, 7)}
        land(made, 2, [{**sale, "at": day_of(2).lower} for sale in changed.values()])
        killed_and_made(one, made, who, tmp_path / "refreshed")
        assert current_windows(one) == expected([changed.get(n, sale) for n, sale in enumerate(rows)], windows)


def killed_and_made(one: Deriving, made: Made, who: str, marks: Path) -> None:
    """Kill a correction during its work, check that it added nothing, correct again: nothing of the first is left."""
    marks.mkdir()
    before = files(made, who)
    ended, said = killed(who, made, marks)
    assert ended == ENDS[who], said
    if ended == 75:
        assert "ended during the work, killed or out of memory" in said
    orphans = files(made, who) - before
    assert orphans, "it was killed before anything was written"
    assert one.job().log.load().state.unsealed == ()

    with by_executors(40):
        assert correct(one.job())["outcome"] == "applied"
    into_the_trace(one.job)
    assert verify(one.job(), data=True).findings == ()
    collect(one.job(), keep=0, graces=AT_ONCE)
    assert not orphans & files(made, who)

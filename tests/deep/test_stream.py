"""A streaming query is killed (SIGKILL, its JVM and its Python processes) while the collection goes on: nothing is
lost, nothing comes twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.support import APPEND, Made, rows_of
from tidemark.model.change import Sealed

PROJECT = Path(__file__).resolve().parents[2]
APP = PROJECT / "tests" / "deep" / "streaming.py"
KILLS = 40
MOMENTS = ((False, 6.0), (True, 0.4), (True, 2.0), (True, 4.0))
"""When kills fall: up to so many seconds behind the start of a query, or behind that of its first batch, which takes a
second; those that follow take half of one."""
PATIENCE_S = 90.0
ROWS = 200


@contextmanager
def query(made: Made, sink: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The query at work, in a session of processes of its own, which are killed at the end."""
    env = {**os.environ, "PYTHONPATH": str(PROJECT / "include"), "PYSPARK_PYTHON": sys.executable}
    env["PYSPARK_SUBMIT_ARGS"] = "--master local[2] --conf spark.ui.enabled=false pyspark-shell"
    env["SPARK_LOCAL_IP"] = "127.0.0.1"
    env.pop("SPARK_HOME", None)
    command = [sys.executable, str(APP), f"{made.root}/{made.name}", str(sink), *words]
    with Path(f"{sink}.err").open("a") as errors:
        running = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
    try:
        yield running
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def land(made: Made, day: int) -> None:
    """A file of rows of a day, from the first of January on."""
    folder = made.landing / made.name / f"{date(2024, 1, 1) + timedelta(day - 1)}"
    folder.mkdir(parents=True)
    pq.write_table(rows_of(made.name, random.Random(day), day, ROWS, 40), folder / "0.parquet")


def landed(made: Made) -> Counter[str]:
    """The rows of the files that landed, calculated without Tidemark."""
    tables = [pq.read_table(file, columns=["id", "kind", "amount"]) for file in made.landing.rglob("*.parquet")]
    return Counter(shown(row) for row in pa.concat_tables(tables).to_pylist())


def shown(row: dict[str, Any]) -> str:
    """A row as text. Zero has no sign in a collection, and NaN is one value."""
    amount = row["amount"]
    return repr((row["id"], row["kind"], amount if amount is None else amount + 0.0))


def taken(sink: Path) -> list[Counter[str]]:
    """The rows that the sink holds, batch by batch."""
    found = []
    for number in range(len(list(sink.glob("*.parquet")))):
        rows: Counter[str] = Counter()
        for row in pq.read_table(sink / f"{number}.parquet").to_pylist():
            rows[shown(row)] += row["diff"]
        found.append(rows)
    return found


def begun(sink: Path) -> list[int]:
    """The batches that were begun, by number; one that was repeated is there as often."""
    log = Path(f"{sink}.log")
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def wait_for_batch(sink: Path) -> None:
    """Until one more batch is begun."""
    before, deadline = len(begun(sink)), time.monotonic() + PATIENCE_S
    while len(begun(sink)) == before:
        assert time.monotonic() < deadline, f"no batch within {PATIENCE_S} s"
        time.sleep(0.02)


def test_a_killed_query_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    chance = random.Random(os.environ.get("SEED", "1"))
    made = Made(tmp_path, APPEND.replace("2024-02-01", "2026-01-01") + "retention: full_merge\n")
    sink = tmp_path / "sink"
    sink.mkdir()
    days = iter(range(1, 10_000))

    def go_on(count: int) -> None:
        for day in islice(days, count):
            land(made, day)
            made.moved(day)

    go_on(2)
    for kill in range(KILLS):
        with ThreadPoolExecutor(1) as writer, query(made, sink) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == "started\n", Path(f"{sink}.err").read_text()[-4000:]
            going_on = writer.submit(go_on, chance.randrange(1, 4))
            behind_a_batch, longest = chance.choice(MOMENTS)
            if behind_a_batch:
                wait_for_batch(sink)
            time.sleep(chance.uniform(0, longest))
            assert running.poll() is None, f"ended before kill {kill}: {Path(f'{sink}.err').read_text()[-4000:]}"
        going_on.result()
    with query(made, sink, "drain") as running:
        assert running.wait(timeout=240) == 0, Path(f"{sink}.err").read_text()[-4000:]
    uppers = {record.change.upper for record in made.log.history() if isinstance(record.change, Sealed)}
    batches = taken(sink)
    assert len(batches) == len(uppers), "one batch a seal"
    assert len(uppers) > KILLS
    assert sum(batches, Counter()) == landed(made)
    assert min(map(len, batches)) > 0
    repeated = sum(count - 1 for count in Counter(begun(sink)).values())
    print(f"{KILLS} kills: {len(batches)} batches, {repeated} of them repeated")

"""Runs of a backfill at once: each does its work in its own process, if it is small, and together they stay within the
memory of a small machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.cli.conftest import EVENTS, Shell
from tests.support.measured import Measure

RUNS, MOST_MIB = 16, 4096
ROWS = 525_000
"""Of the estimated memory of these there is hardly more that is small."""


def proportional_mib(pid: int) -> float:
    """The memory of a process in MiB; pages that processes share are divided among them. 0 once it has ended."""
    with suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        return int(found[1]) / 1024 if found else 0.0
    return 0.0


@pytest.mark.measured
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what processes share")
@pytest.mark.timeout(600)
def test_sixteen_runs_at_the_bound_stay_within_four_gibibytes(shell: Shell, measure: Measure) -> None:
    day = shell.landing / "events" / "2024-01-01"
    day.mkdir(parents=True)
    drawn = np.random.default_rng(1)
    words = pa.array([f"item-{number:07d}" for number in range(ROWS)])
    amounts = pa.array(drawn.integers(0, 10**6, ROWS))
    at = pa.array(["2024-01-01T10:00:00Z"] * ROWS)
    pa.csv.write_csv(pa.table({"id": words, "amount": amounts, "at": at}), day / "a.csv")
    where = {"TIDEMARK_LANDING": str(shell.landing), "TIDEMARK_DOCS": str(shell.files)}
    commands = []
    for number in range(RUNS):
        root = shell.root / str(number)
        file = shell.declared(EVENTS)
        shell.ok("init", file, "--root", str(root))
        commands.append(
            [
                *(sys.executable, "-c", "from tidemark.cli import app; app()", "ingest", "events", "--json"),
                *("--date", "2024-01-01", "--as-landed", "--root", str(root)),
            ]
        )
    began = [
        subprocess.Popen(
            command, env={**os.environ, **where}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    most = 0.0
    while any(run.poll() is None for run in began):
        most = max(most, sum(proportional_mib(run.pid) for run in began if run.poll() is None))
        time.sleep(0.05)
    said = [run.communicate() for run in began]
    assert [run.returncode for run in began] == [0] * RUNS, said
    works = [json.loads(out)["work"] for out, _ in said]
    assert {work["runner"] for work in works} == {"process"}, said[0][1]
    estimated = works[0]["estimated_peak_mib"]
    assert estimated > 115, "the runs are too small to show it"
    measure.below(f"16 ingests at once, {estimated} MiB estimated for each", most, MOST_MIB, "MiB")

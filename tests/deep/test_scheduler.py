"""The campaign over a real Airflow: any of its processes, or of the launchers', is hit while a backfill runs.

Nobody helps: what died is started again by the local Airflow's supervisor, tasks are tried again by its scheduler, and
the run of every day must end in success, with the oracle's answers, and with nothing left.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

from tests.deep.campaign import compare
from tests.deep.oracle import APPEND, UPSERT, Landed
from tests.deep.victims import MARK, hit, marked
from tests.e2e.instance import Airflow, running

HITS = int(os.environ.get("HITS", "20"))
HITS_A_DAY = 2
"""A task has five retries, and an unlucky one takes every hit of its day."""
DAY_WITHIN_S = 1200.0
SPARED = frozenset({"postgres", "python tools/local_airflow.py"})
"""The database and who starts the others again are this Airflow's ground: to lose them is to switch the machine off."""


def test_a_backfill_survives_whatever_dies(tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("SEED", "1")))
    mark = os.environ[MARK] = str(tmp_path)
    table: Counter[tuple[str, str]] = Counter()
    try:
        with running() as airflow:
            collections = [Landed(text, random.Random(chance.random())) for text in (APPEND, UPSERT)]
            for landed in collections:
                (airflow.folder / "collections" / f"{landed.name}.yaml").write_text(landed.text)
                airflow.api.wait_for_dag(landed.name, seconds=600)
                airflow.api.unpause(landed.name)
            while table.total() < HITS:
                landed = chance.choice(collections)
                _day(airflow, landed, chance, mark, table)
                compare(landed, airflow.folder / "root", chance)
        left = marked(mark)
        assert not left, f"processes are left: {[p.cmdline() for p in left]}"
        assert not airflow.folder.exists()
    finally:
        del os.environ[MARK]
        for (role, action), count in sorted(table.items()):
            print(f"  {role:30} {action:10} {count:4}")


def _day(airflow: Airflow, landed: Landed, chance: random.Random, mark: str, table: Counter[tuple[str, str]]) -> None:
    """Land and backfill one more day, with some hits on the way."""
    date = landed.land(airflow.landing)
    airflow.api.backfill(landed.name, date, date)
    deadline = time.monotonic() + DAY_WITHIN_S
    due = [time.monotonic() + chance.uniform(1, 40) for _ in range(HITS_A_DAY)]
    while (state := _state(airflow, landed.name, date)) not in ("success", "failed"):
        assert time.monotonic() < deadline, f"{landed.name} {date} is {state} after {DAY_WITHIN_S:.0f} s"
        if due and time.monotonic() > min(due):
            due.remove(min(due))
            if done := hit(chance, mark, None, spare=SPARED, stop_for_good=_ours):
                table[done.role, done.action] += 1
                print(f"{table.total():4} {landed.name} {date} {done.action:10} {done.role}", flush=True)
        time.sleep(0.5)
    assert state == "success", f"{landed.name} {date} needs a person"


def _ours(role: str) -> bool:
    """Whether somebody notices that this is stopped: Airflow's own processes are Airflow's to notice."""
    return "airflow" not in role and "python" not in role


def _state(airflow: Airflow, dag: str, date: str) -> str:
    """Of the day's run; unknown while the API server is away."""
    try:
        return next((r["state"] for r in airflow.api.runs(dag) if str(r["data_interval_start"]).startswith(date)), "")
    except RuntimeError:
        return "unknown"

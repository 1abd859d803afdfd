"""The replay app: dead letters of several files, read by executors, applied once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.support import UPSERT, Made, day_of
from tests.support.reading import as_of
from tidemark.jobs import app

pytestmark = pytest.mark.spark
DISCARDS = UPSERT.replace("late: {reemit: {max_lateness: 2d}}\n", "")


def replayed(made: Made, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """The result of the app, the last line of stdout."""
    assert app.main("replay", ["--root", str(made.root), "--collection", made.name, *more]) == 0
    return dict(json.loads(capsys.readouterr().out.splitlines()[-1]))


def test_executors_replay_what_this_process_would(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Made(tmp_path, DISCARDS)
    made.land(1, 200, keys=30)
    made.land(2, 200, keys=30, files=5)
    made.moved(1, "ingest", "seal", "drain")
    discarded = made.step("ingest", 2)["late_discarded"]
    assert discarded > 5
    left = replayed(made, capsys)
    assert (left["outcome"], left["rows"], left["left"]) == ("nothing to do", 0, discarded)
    assert replayed(made, capsys, "--path", "elsewhere", "--as-now")["rows"] == 0
    of_first_day = ("--lower", "2024-01-01", "--upper", "2024-01-02")
    assert replayed(made, capsys, *of_first_day, "--as-now")["rows"] == 0
    result = replayed(made, capsys, "--path", "2024-01-02", "--as-now")
    assert (result["step"], result["outcome"]) == ("replay", "applied")
    assert (result["rows"], result["moved"], result["left"]) == (discarded, discarded, 0)
    assert replayed(made, capsys, "--as-now")["outcome"] == "nothing to do"
    made.moved(2, "seal", "drain")
    state = made.log.load().state
    assert state.totals.rows_replayed == discarded
    assert set(as_of(made.store, state, time=state.seal - 1).column("id").to_pylist()) == living(made)


def living(made: Made) -> set[int]:
    """The keys whose last fact (by event time, file, row) is no delete, dead letters having happened at the seal."""
    last: dict[int, tuple[Any, ...]] = {}
    for path in sorted((made.landing / made.name).rglob("*.parquet")):
        seal = day_of(1).upper if "2024-01-02" in str(path) else 0
        for number, row in enumerate(pq.read_table(path).to_pylist()):
            happened = max(seal, int(row["happened"].timestamp() * 1_000_000))
            fact = (happened, str(path), number, row["gone"])
            last[row["id"]] = max(last.get(row["id"], fact), fact)
    return {key for key, fact in last.items() if not fact[-1]}

"""What a corrected file is compared with: in one process all others, on Spark without gates those on Spark."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.corrections import ON_SPARK
from benchmarks.peers.spark import PEERS
from benchmarks.report_corrections import OURS, targets

pytestmark = pytest.mark.pure


def life(engine: str, cpu: float, days: int = 100) -> dict[str, Any]:
    way = {"way": "MERGE", "bytes": 10, "cpu_seconds": cpu, "answers": {"right": days, "days": days}}
    return {"engine": engine, "envelope": "append", "days": days, "rows_a_day": 10, "ways": [way]}


def test_like_is_compared_with_like() -> None:
    lives = [life("Tidemark in one process", 1), life("Tidemark on Spark, without gates", 4)]
    lives += [life("Tidemark on Spark, with gates", 9), life("delta-rs", 2), life("Delta", 5), life("Delta", 5, days=3)]
    found = [line for line in targets({"reruns": [], "reprocess": [], "lives": lives}) if "CPU" in line[0]]
    assert [(what.partition("append")[2], shown, met) for what, _, shown, met in found] == [
        (": CPU, beside delta-rs, MERGE", "0.500 of it", True),
        (": CPU, beside Delta, MERGE", "0.200 of it", True),
        (", on Spark without gates: CPU, beside Delta, MERGE", "0.800 of it", True),
    ]


def test_whatever_is_ours_on_spark_and_no_peer_is_not_compared_with_itself() -> None:
    assert {name for name in ON_SPARK if name not in PEERS} >= {name for name, where in OURS.items() if where}
    assert all(name.startswith("Tidemark") for name in ON_SPARK if name not in PEERS)

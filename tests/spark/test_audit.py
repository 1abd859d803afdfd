"""The audit app: executors read all data; it reports what is wrong as JSON and by the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import ALL, Made
from tidemark.jobs import app
from tidemark.jobs.queries.verify import verify
from tidemark.storage.sidecars import ledger, parts_table

pytestmark = pytest.mark.spark


def audited(made: Made, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """The exit code, the last line of stdout, stderr."""
    code = app.main("audit", ["--root", str(made.root), "--collection", made.name])
    said = capsys.readouterr()
    return code, json.loads(said.out.splitlines()[-1]), said.err


def test_an_audit_reads_everything_and_names_what_is_at_fault(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Made(tmp_path, ALL["upsert"])
    for day in (1, 2):
        made.land(day, 200, keys=30)
        made.moved(day, "ingest", "seal", "drain")
    code, report, _ = audited(made, capsys)
    state = made.log.load().state
    assert (code, report["step"], report["outcome"], report["sound"]) == (0, "audit", "sound", True)
    assert report["parts_read"] == report["parts"] == len(parts_table.parts_of(made.store, state.batches))
    late = [entry.late for entry in ledger.entries(made.store, state.ledger) if entry.late]
    damaged = [parts_table.parts_of(made.store, state.trace)[-1].file.key, late[0].key if late[0] else ""]
    for key in damaged:
        path = made.root / made.name / key
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert verify(made.job()).sound, "sizes are as recorded"
    code, report, err = audited(made, capsys)
    assert (code, report["step"], report["sound"], report["error"]["kind"]) == (1, "audit", False, "Unsound")
    assert {finding["object"] for finding in report["findings"]} == set(damaged)
    assert all(key in err for key in damaged)
    assert f"run no further step of {made.name}" in report["error"]["message"]

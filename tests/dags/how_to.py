"""A project with the DAG files that docs/how-to shows, and some flights for them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.dags.support import PROJECT

PAGES = ("tell-people.md", "add-a-task.md", "own-dags.md")
LANDED = {"2012-12-31": ("scheduled", "2012-12-31T20:00:00"), "2013-01-01": ("departed", "2013-01-01T15:00:00")}
"""A day's status of each of ROWS flights, and when it was known."""
ROWS = 30


def texts() -> Iterator[str]:
    """The pages, in the order in which their files are written."""
    for page in PAGES:
        yield (PROJECT / "docs" / "how-to" / page).read_text(encoding="utf-8")


def files(folder: str = "dags") -> Iterator[tuple[str, str]]:
    """The files of the pages for a folder of the project: names and texts."""
    for text in texts():
        yield from re.findall(rf"^`{folder}/(\w+\.py)`:\n\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section() -> dict[str, Any]:
    """What the pages say of `airflow` in flights.yaml, taken together; of a field the first of them counts."""
    said: dict[str, Any] = {}
    for text in texts():
        for block in re.findall(r"^```yaml\n(airflow:.*?)^```$", text, re.MULTILINE | re.DOTALL):
            for name, value in yaml.safe_load(block)["airflow"].items():
                said.setdefault(name, value)
    return said


def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay out the project in a folder, as the deployment that the environment names."""
    collections, dags = folder / "include" / "collections", folder / "dags"
    for made in (collections, dags, folder / "exports"):
        made.mkdir(parents=True)
    flights = (PROJECT / "include" / "collections" / "flights.yaml").read_text(encoding="utf-8")
    said = yaml.safe_dump({"airflow": section()})
    (collections / "flights.yaml").write_text(f"dag: own\n{flights}\n{said}", encoding="utf-8")
    for name, text in files("include"):
        (folder / "include" / name).write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(str(folder / "include"))
    monkeypatch.setenv("ALERTS", str(folder / "alerts.txt"))
    monkeypatch.setenv("TIDEMARK_COLLECTIONS", str(collections))
    monkeypatch.setenv("EXPORTS", str(folder / "exports"))
    monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(dags))
    for name, text in files():
        (dags / name).write_text(text, encoding="utf-8")
    for day, (status, known) in LANDED.items():
        landed = folder / "landing" / "flights" / day / "a.parquet"
        landed.parent.mkdir(parents=True)
        pq.write_table(_rows(status, datetime.fromisoformat(known).replace(tzinfo=UTC)), landed)
    return folder


def _rows(status: str, known: datetime) -> pa.Table:
    texts = {"carrier": "AA", "origin": "JFK", "dest": "LAX", "tailnum": "N14228", "status": status}
    due = datetime(2013, 1, 1, 15, tzinfo=UTC)
    times = {"time_hour": due, "scheduled_at": due, "happened_at": known, "reported_at": known}
    return pa.table(
        {name: [text] * ROWS for name, text in texts.items()}
        | {name: pa.array([time] * ROWS, pa.timestamp("us", "UTC")) for name, time in times.items()}
        | {"flight": pa.array(range(ROWS), pa.int64()), "delay_min": pa.nulls(ROWS, pa.int64())}
    )

"""The tutorial (docs/how-to/first-collection.md), taken as it stands there, its last month alone and from a shell."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from demo import sales
from tests.cli.conftest import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "first-collection.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`include/collections/(\w+)\.yaml`:\n\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
MONTH = ("--from", "2024-12-01", "--to", "2024-12-31")


@pytest.fixture
def december(shell: Shell) -> Shell:
    """The collection, begun in December; its files have landed."""
    sales.land(shell.landing, date(2024, 12, 1), 31)
    file = FILES["sales"].replace("start: 2024-01-01", "start: 2024-12-01")
    shell.ok("init", shell.declared(file))
    return shell


def parsed(text: str) -> Any:
    return json.loads(text)


def test_a_year_is_landed_the_same_each_time(tmp_path: Path) -> None:
    assert sales.land(tmp_path / "a", days=2) == 1_000
    sales.land(tmp_path / "b", days=3)
    file = "sales/2024-01-02/sales.csv"
    assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_what_is_no_way_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEMARK_LANDING", str(tmp_path))
    with pytest.raises(SystemExit, match="python -m demo"):
        sales.main(["mendd"])
    monkeypatch.delenv("TIDEMARK_LANDING")
    with pytest.raises(SystemExit, match="python -m demo"):
        sales.main([])


def test_the_month_goes_as_the_page_says(december: Shell) -> None:
    shell = december
    failed = shell("backfill", "sales", *MONTH)
    assert failed.code != 0
    assert "2 rows hold" in failed.err
    assert "masked" in failed.err
    assert "example.com" not in failed.err + failed.out
    (batch,) = set(re.findall(r"tidemark quarantine sales (\w+)", failed.err))
    shell.ok("quarantine", "sales", batch)
    assert sales.mend(shell.landing) == 2
    report = parsed(shell.ok("backfill", "sales", *MONTH, "--json").out)
    assert report["complete_below_text"] == "2025-01-01T00:00:00Z"
    days = {day["lower"][:10]: day for day in report["intervals"]}
    assert (days["2024-12-17"]["rows"], days["2024-12-17"]["late"]) == (500, 50)
    assert sum(day["late"] for day in days.values()) == 50


def test_a_corrected_day_is_twenty_rows_that_go_and_twenty_that_come(december: Shell) -> None:
    shell = december
    sales.mend(shell.landing)
    shell.ok("backfill", "sales", *MONTH)
    assert sales.correct(shell.landing) == 20
    shell.ok("backfill", "sales", "--from", "2024-12-17", "--to", "2024-12-17", "--again")
    found = shell.ok("changes", "sales", "--after", "2024-12-31T23:59:59.999999Z", "--json", "--limit", "0").out
    changes = parsed(found)["rows"]
    assert sorted(change["diff"] for change in changes) == [-1] * 20 + [1] * 20
    assert {change["store"] for change in changes} == {"Braga"}

"""Figures that were kept: results/*.json, and RESULTS.md with its pictures made from the newest of each benchmark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.picture import picture
from benchmarks.report import markdown


def as_json(report: dict[str, Any]) -> str:
    """Indented, with every list of numbers on one line."""
    text = json.dumps(report, indent=1)
    numbers = re.compile(r"\[\s+(-?[\d.e+-]+(?:,\s+-?[\d.e+-]+)*)\s+\]")
    return numbers.sub(lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", text) + "\n"


def tell(home: Path) -> None:
    """Write RESULTS.md anew, and the picture of the longest life."""
    reports = sorted((json.loads(path.read_text()) for path in (home / "results").glob("*.json")), key=_date)
    lives = [held for report in reports for held in report["results"].get("longevity", [])[:1]]
    pictures = {}
    if lives:
        (home / "results" / "longevity.svg").write_text(picture(lives[-1]))
        pictures["longevity"] = "results/longevity.svg"
    (home / "RESULTS.md").write_text(markdown(reports, pictures))


def _date(report: dict[str, Any]) -> str:
    return str(report["date"])

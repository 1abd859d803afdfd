"""Figures that were kept: results/*.json, and RESULTS.md with its pictures made from the newest of each benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.picture import picture
from benchmarks.report import markdown

SHORT = 240
"""Characters of a line's object or list."""


def as_json(report: dict[str, Any]) -> str:
    """Indented; what fits on a line, and every list of numbers, stands on one."""
    return _written(report, "\n") + "\n"


def _written(data: Any, below: str) -> str:
    """JSON whose further lines begin with `below`, a line's end and its indent."""
    line = json.dumps(data)
    if not isinstance(data, dict | list) or len(line) <= SHORT or _is_of_numbers(data):
        return line
    inner = below + " "
    if isinstance(data, dict):
        return (
            f"{{{inner}{(',' + inner).join(f'{json.dumps(k)}: {_written(v, inner)}' for k, v in data.items())}{below}}}"
        )
    return f"[{inner}{(',' + inner).join(_written(one, inner) for one in data)}{below}]"


def _is_of_numbers(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(one, int | float) for one in data)


def tell(home: Path) -> None:
    """Write RESULTS.md again, and the picture of the longest life."""
    reports = sorted((json.loads(path.read_text()) for path in (home / "results").glob("*.json")), key=_date)
    lives = [life for report in reports for life in report["results"].get("longevity", [])[:1]]
    pictures = {}
    if lives:
        (home / "results" / "longevity.svg").write_text(picture(lives[-1]))
        pictures["longevity"] = "results/longevity.svg"
    (home / "RESULTS.md").write_text(markdown(reports, pictures))


def _date(report: dict[str, Any]) -> str:
    return str(report["date"])

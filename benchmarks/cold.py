"""What a process that is started for one small thing costs: CPU seconds of commands and of reads from Python, over a
collection of 80 rows. Beside them, by turns, a process that imports pyarrow and duckdb and does nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Figures

DAYS, ROWS, TURNS = 4, 20, 9
COLLECTION = """
name: sales
key: [id]
value: [store, amount]
columns: {id: int, store: string, amount: int}
start: 2024-01-01
source: {path: "{{ landing }}/{{ ds }}/*.csv", format: csv, envelope: append, ready: exists}
time: arrival
schedule: "@daily"
"""
TIDEMARK = (sys.executable, "-c", "from tidemark.cli import app; app()")
ONE_KEY = 'import os, tidemark; tidemark.open(os.environ["TIDEMARK_ROOT"], "sales").as_of(where={"id": 105}).to_arrow()'
PEER = "python: import pyarrow, duckdb"
DOORS: dict[str, Sequence[str]] = {
    PEER: (sys.executable, "-c", "import pyarrow, duckdb"),
    "tidemark status": (*TIDEMARK, "status", "sales"),
    "python: open, and read one key": (sys.executable, "-c", ONE_KEY),
    "tidemark as-of, one key": (*TIDEMARK, "as-of", "sales", "--where", "id=105"),
    "tidemark sql": (*TIDEMARK, "sql", "SELECT count(*) FROM sales"),
}


def cold() -> dict[str, Any]:
    """CPU seconds of each door, turn by turn; those of `tidemark advance` are of a day each."""
    with tempfile.TemporaryDirectory(prefix="tidemark-cold-") as name:
        folder = Path(name)
        (folder / "sales.yaml").write_text(COLLECTION)
        place = {"TIDEMARK_ROOT": str(folder / "root"), "TIDEMARK_LANDING": str(folder / "landing")}
        _spent((*TIDEMARK, "init", str(folder / "sales.yaml")), place)
        advance = [_advanced(folder, day, place) for day in range(1, DAYS + 1)]
        turns = [{door: _spent(words, place) for door, words in DOORS.items()} for _ in range(TURNS)]
    seconds = {door: [turn[door] for turn in turns] for door in DOORS}
    return {"rows": DAYS * ROWS, "seconds": {**seconds, f"tidemark advance, {ROWS} rows": advance}}


def figures(result: dict[str, Any]) -> Figures:
    """The table of a result."""
    peer = min(result["seconds"][PEER])
    return Figures(
        "A process for one small thing",
        f"CPU seconds of the whole process, of a collection with {result['rows']} rows on a local disk; by turns.",
        ("process", "least CPU s", "median CPU s", "times the imports"),
        tuple(
            (door, f"{min(seconds):.2f}", f"{median(seconds):.2f}", f"{min(seconds) / peer:.1f}")
            for door, seconds in result["seconds"].items()
        ),
    )


def _advanced(folder: Path, day: int, place: dict[str, str]) -> float:
    landed = folder / "landing" / f"2024-01-0{day}"
    landed.mkdir(parents=True)
    rows = (f"{100 * day + number},s{number % 3},{number}\n" for number in range(ROWS))
    (landed / "a.csv").write_text("id,store,amount\n" + "".join(rows))
    return _spent((*TIDEMARK, "advance", "sales", "--to", f"2024-01-0{day + 1}"), place)


def _spent(words: Sequence[str], place: dict[str, str]) -> float:
    """CPU seconds of a process; CalledProcessError if it fails."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(words, env=os.environ | place, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            out.seek(0)
            raise subprocess.CalledProcessError(process.returncode, words, out.read())
    return usage.ru_utime + usage.ru_stime

"""One peer through one life, in the peer's own environment: `python -m benchmarks.peers.spark NAME CASE OUT`.

CASE is a JSON object of a workload's fields and `every`; the figures go to the file OUT as JSON. Started by run.py.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.spark import opened
from benchmarks.peers.spark.life import life
from benchmarks.workload import Workload
from tidemark.model.collection import Envelope


def main(name: str, case: str, out: str) -> None:
    asked = json.loads(case)
    workload = Workload(Envelope.UPSERT, asked["base"], asked["ingests"], asked["rows"], asked["seed"])
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as made:
        folder = Path(made).resolve()
        table = opened(name, folder / "stored")
        try:
            found = life(table, folder, workload, asked["every"])
        finally:
            table.close()
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

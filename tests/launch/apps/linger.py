"""Says in FOLDER/started that it runs, waits for FOLDER/go, then writes FOLDER/committed: what a zombie would do."""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    folder, flags = Path(argv[0]), argv[1:]
    if "--guard" in flags:
        from tidemark.resident.guard import die_with_parent

        die_with_parent()
    if "--job" in flags:
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
        endless = spark.range(0, 10**15, 1, 2).selectExpr("sum(id % 7)")
        threading.Thread(target=endless.collect, daemon=True).start()
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.02)
    part = folder / "started.part"
    part.write_text(json.dumps({"pid": os.getpid(), "parent": os.getppid()}))
    part.rename(folder / "started")
    deadline = time.monotonic() + 600
    while not (folder / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    (folder / "committed").touch()
    print(json.dumps({"step": "linger", "outcome": "applied"}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

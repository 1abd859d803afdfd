"""Prints what a run finds around it: Spark's active jobs, one setting, its environment, folder and arguments."""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession


def main(argv: Sequence[str]) -> int:
    spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    fact = {
        "step": "facts",
        "active": list(spark.sparkContext.statusTracker().getActiveJobsIds()),
        "application": spark.sparkContext.applicationId,
        "conf": dict(spark.sparkContext.getConf().getAll()),
        "temporary": tempfile.gettempdir(),
        "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
        "views": [t.name for t in spark.catalog.listTables()],
        "environment": dict(os.environ),
        "cwd": str(Path.cwd()),
        "argv": list(argv),
        "pid": os.getpid(),
    }
    spark.range(1).createOrReplaceTempView("mine")
    print(json.dumps(fact))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

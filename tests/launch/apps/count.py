"""Counts to ten with Spark and says so on its last line."""

import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession


def main(argv: Sequence[str]) -> int:
    spark = SparkSession.builder.appName("count").getOrCreate()
    print("counting", file=sys.stderr)
    print(json.dumps({"step": "count", "outcome": "applied", "rows": spark.range(10).count(), "argv": list(argv)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

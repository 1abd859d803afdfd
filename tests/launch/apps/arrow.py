"""Sends a small frame through a Python worker."""

import json
import os
import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession


def with_word(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        word = os.environ.get("TIDEMARK_WORD", "")
        yield pa.RecordBatch.from_pydict({"id": batch.column(0), "word": [word] * batch.num_rows})


def main(argv: Sequence[str]) -> int:
    spark = SparkSession.builder.appName("arrow").getOrCreate()
    rows = spark.range(4).mapInArrow(with_word, "id long, word string").collect()
    print(json.dumps({"step": "arrow", "outcome": "applied", "rows": len(rows), "words": sorted({r[1] for r in rows})}))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

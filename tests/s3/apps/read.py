"""As-of through Spark: read.py ROOT COLLECTION. Prints the rows, sorted, as one JSON line."""

import json
import sys

import tidemark
from tidemark.spark.session import session

if __name__ == "__main__":
    rows = tidemark.open(sys.argv[1], sys.argv[2]).as_of().to_spark(session("read")).collect()
    print(json.dumps(sorted([row["id"], row["status"], row["_multiplicity"]] for row in rows)), flush=True)

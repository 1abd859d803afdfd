"""As-of through Spark: read.py ROOT COLLECTION. Prints the rows, sorted, as one JSON line."""

import json
import sys

from tests.support.reading_frames import as_of_frame as as_of
from tidemark.jobs.job import collection_store, fresh_id
from tidemark.spark.session import session
from tidemark.storage.log.log import StateLog

if __name__ == "__main__":
    store = collection_store(sys.argv[1], sys.argv[2])
    state = StateLog(store, fresh_id).load().state
    rows = as_of(session("read"), store, state).collect()
    print(json.dumps(sorted([row["id"], row["status"], row["_multiplicity"]] for row in rows)), flush=True)

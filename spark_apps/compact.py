"""Move `since` by the retention, then run every compaction that is due.

spark-submit --py-files build/tidemark.zip spark_apps/compact.py --root R --collection C --lower T --upper T
"""
# Written by `make reference` from the declaration of the step; README.md says why it is a file of its own.

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main("compact", sys.argv[1:]))

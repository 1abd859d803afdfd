"""Check what a gate has not certified yet: unsealed, frontier, trace or compaction.

spark-submit --py-files build/tidemark.zip spark_apps/gate.py --root R --collection C [--lower T --upper T] --gate GATE
"""
# Written by `make reference` from the declaration of the step; README.md says why it is a file of its own.

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main("gate", sys.argv[1:]))

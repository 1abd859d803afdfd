"""Check every object and every row of every part against what was recorded, and recent gates' verdicts.

spark-submit --py-files build/tidemark.zip spark_apps/audit.py --root R --collection C
"""
# Written by `make reference` from the declaration of the step; README.md says why it is a file of its own.

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main("audit", sys.argv[1:]))

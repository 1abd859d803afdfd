"""Promise that the collection is complete below the interval's end (without one, as far as all was ingested), and
that what was learned is final.

spark-submit --py-files build/tidemark.zip spark_apps/seal.py --root R --collection C --lower T --upper T
"""
# Written by `make reference` from the declaration of the step; README.md says why it is a file of its own.

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main("seal", sys.argv[1:]))

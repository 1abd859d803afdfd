"""Remove objects that no kept version names.

spark-submit --py-files build/tidemark.zip spark_apps/collect.py --root R --collection C
"""
# Written by `make reference` from the declaration of the step; README.md says why it is a file of its own.

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main("collect", sys.argv[1:]))

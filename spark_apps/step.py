"""Run any step by its name, also one that has no file of its own here.

spark-submit --py-files build/tidemark.zip spark_apps/step.py STEP --root ROOT --collection NAME [--lower T --upper T] …
"""

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]))

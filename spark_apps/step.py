"""Run any step by its name, also one that has no file of its own here.

spark-submit --py-files build/tidemark.zip spark_apps/step.py STEP --root ROOT --collection NAME [--lower T --upper T] …
"""

import sys
from collections.abc import Sequence

from tidemark.jobs import app


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 refused, 75 run again. The result is the last line of stdout, as JSON."""
    return app.main(argv[0] if argv else "", argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

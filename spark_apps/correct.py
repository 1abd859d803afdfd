"""Bring a derived collection to what its definition says of its inputs.

spark-submit --py-files build/tidemark.zip spark_apps/correct.py --root ROOT --collection NAME --lower T --upper T
"""

import sys
from collections.abc import Sequence

from tidemark.jobs import app


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 refused, 75 run again. The result is the last line of stdout, as JSON."""
    return app.main("correct", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

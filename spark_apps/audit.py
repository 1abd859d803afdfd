"""Verify a collection with all its data: every row of every part, every object of late rows, read by the executors.

spark-submit --py-files build/tidemark.zip spark_apps/audit.py --root ROOT --collection NAME
"""

import sys
from collections.abc import Sequence

from tidemark.jobs import app


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 sound, 1 if anything was found, 75 run again. The last line of stdout tells all, as JSON."""
    return app.main("audit", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

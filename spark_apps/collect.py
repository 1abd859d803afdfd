"""Remove what no version that is kept names: superseded versions, merged batches, leftovers of killed attempts.

spark-submit --py-files build/tidemark.zip spark_apps/collect.py --root ROOT --collection NAME [--keep-versions 7d]
"""

import sys
from collections.abc import Sequence

from tidemark.jobs import app


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 refused, 75 run again. The result is the last line of stdout, as JSON."""
    return app.main("collect", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Certify what a step wrote, or stop the run and show why.

spark-submit --py-files build/tidemark.zip spark_apps/gate.py --root R --collection C --lower T --upper T --gate G
"""

import sys
from collections.abc import Sequence

from tidemark.jobs import app


def main(argv: Sequence[str]) -> int:
    """The exit code: 0 done, 1 refused, 75 run again. The result is the last line of stdout, as JSON."""
    return app.main("gate", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m tests.conformance DIR`: run the vector files of a folder against the real modules.

One line per failing case, and one per case that is law-only: the law of windows alone answers it, as no collection file
can declare it, as production asks Spark for it, or as the case tells the order of rows that came within one interval,
which production judges together. Then, if there are any, how many are law-only; at last
`N passed, N failed`. Exit 0 if all passed, 1 if not, 2 if there is nothing to run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "include"))  # as `tools/run` has it

from tests.conformance.runner import run


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not list(Path(arguments[0]).glob("*.json")):
        print("usage: python -m tests.conformance DIR, a folder of vector files (*.json)", file=sys.stderr)
        return 2
    counts = run(Path(arguments[0]), print)
    if counts.law_only:
        print(f"{counts.law_only} law-only")
    print(f"{counts.passed} passed, {counts.failed} failed")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

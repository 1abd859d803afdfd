"""Gives its arguments back."""

import json
import sys
from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    print(json.dumps({"step": "argv", "argv": list(argv)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

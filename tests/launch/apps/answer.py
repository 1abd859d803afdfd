"""Prints its first argument and exits with its second, with noise before, between and behind."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    print('{"step": "an earlier line", "outcome": "applied"}')
    print("noise on stdout")
    print("noise on stderr", file=sys.stderr)
    if argv[0]:
        print(argv[0])
    print("{ not json }", file=sys.stderr)
    return int(argv[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

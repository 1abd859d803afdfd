"""Compile what runs to byte code, once, where it is installed.

A process that finds no byte code compiles what it imports, each time where PYTHONDONTWRITEBYTECODE is set or the folder
is not its own: importing Great Expectations takes 8.3 CPU seconds then instead of 3.1. Imports the standard library
only, and is run by the Python that is to run the code: `python tools/byte_code.py FOLDER…`.
"""

from __future__ import annotations

import compileall
import re
import sys
from collections.abc import Sequence
from pathlib import Path

NOT_RUN = re.compile(r"/(tests?|testing|idlelib|node_modules)/")
"""Parts of packages that neither tasks nor commands import: a quarter of what is installed."""
FOR_TESTS = ("cfnlint", "fontTools", "hypothesis", "moto", "mpmath", "mypy", "mypyc", "networkx", "pip", "sympy")
"""Packages that only tests, checks and set-up import: another quarter."""


def compile_folders(folders: Sequence[Path], *, workers: int = 0) -> bool:
    """Compile every Python file of these folders that has no byte code yet, or older one; whether all could be.

    Tests of packages, and packages for tests, are left out. `workers` processes at once, 0 for one a core.
    """
    done = True
    for folder in folders:
        # A file that is not for this version of Python is its package's affair: the others are compiled all the same.
        done = bool(compileall.compile_dir(folder, quiet=2, rx=LeftOut(folder), workers=workers)) and done
    return done


class LeftOut:
    """As compileall asks: which paths below a folder are not compiled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def search(self, path: str) -> bool:
        """Whether to leave a path out."""
        below = Path(path).relative_to(self._folder)
        return below.parts[0] in FOR_TESTS or NOT_RUN.search(f"/{below}") is not None


if __name__ == "__main__":
    compile_folders([Path(folder) for folder in sys.argv[1:]])

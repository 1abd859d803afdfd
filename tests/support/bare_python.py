"""A Python without Tidemark, for Spark's workers: what they know of it was sent to them."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path


def bare_python(folder: Path) -> Path:
    """A program that is this Python with its packages, but for the source tree that its path files add."""
    program = folder / "bare-python"
    packages = sysconfig.get_paths()["purelib"]
    # Without `site` nobody reads the path files of the packages' folder.
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    return program

"""Build build/tidemark.zip, what Spark ships to its executors: include/tidemark, the module by which Spark finds the
format `tidemark`, and the definitions of derived collections in Python that are in include/definitions, reproducibly.

Equal sources give equal bytes (sorted names, one fixed date and mode); an unchanged zip is not written again.
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SOURCE_ROOT = PROJECT / "include"
SHIPPED = ("definitions", "pyspark_tidemark.py", "tidemark")
TARGET = PROJECT / "build" / "tidemark.zip"

# The oldest date a zip can hold; any fixed one would do.
FIXED_DATE = (1980, 1, 1, 0, 0, 0)
READABLE_FILE = 0o100644 << 16


def zip_bytes(source_root: Path) -> bytes:
    """The zip of what is SHIPPED under `source_root`, a function of names and contents only."""
    within = (path for name in SHIPPED for path in (source_root / name, *(source_root / name).rglob("*")))
    files = sorted(path for path in within if path.is_file())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in files:
            if path.suffix == ".pyc" or "__pycache__" in path.parts:
                continue
            entry = zipfile.ZipInfo(path.relative_to(source_root).as_posix(), FIXED_DATE)
            entry.external_attr = READABLE_FILE
            # Stored, not deflated: the bytes do not depend on the zlib of the machine.
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def build(source_root: Path = SOURCE_ROOT, target: Path = TARGET) -> bool:
    """Bring `target` up to date; True if it was written. Readers see the old zip or the new, never half."""
    content = zip_bytes(source_root)
    if target.exists() and target.read_bytes() == content:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(target)
    return True


if __name__ == "__main__":
    written = build()
    print(f"{TARGET.relative_to(PROJECT)} {'written' if written else 'is up to date'}", file=sys.stderr)

"""The folder of collection files: where it is, and which of its files declare a name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tidemark.config.text import text_of
from tidemark.errors import InvalidUsage

SUFFIXES = (".yaml", ".yml")


def home() -> Path:
    """The project folder: TIDEMARK_HOME, else the folder that holds `include/` with this package."""
    return Path(os.environ.get("TIDEMARK_HOME") or Path(__file__).resolve().parents[3])


def collections_folder() -> Path:
    """Where collection files are: TIDEMARK_COLLECTIONS, else `include/collections` of the project folder."""
    return Path(os.environ.get("TIDEMARK_COLLECTIONS") or home() / "include" / "collections")


def files_of(folder: Path) -> list[Path]:
    """The collection files of a folder, by name. InvalidUsage if it cannot be listed; none if it is not there."""
    if not folder.is_dir():
        return []
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except OSError as error:
        raise InvalidUsage(f"{printable(folder)}: cannot be listed: {error.strerror}") from None


def files_declaring(name: str, folder: Path) -> Iterator[Path]:
    """The collection files of a folder with a line that declares this name, as YAML mostly writes it, by name.

    Right files and wrong ones. None of a folder or a file that cannot be read.
    """
    declares = re.compile(rf"^[\"']?name[\"']?\s*:\s*[\"']?{re.escape(name)}[\"']?\s*(#|$)", re.MULTILINE)
    try:
        files = files_of(folder)
    except InvalidUsage:
        return
    for file in files:
        try:
            declared = declares.search(text_of(file))
        except InvalidUsage:
            continue
        if declared:
            yield file


def printable(path: str | Path) -> str:
    """A path as any log, page and database takes it: on one line, in Unicode."""
    text = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)

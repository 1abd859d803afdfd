"""Tests as text: a command line, its input, `----`, the output expected.

Cases are separated by blank lines; lines that begin with `#` say what a case shows. Words of a command line are
`name=value` or flags. `REWRITE=1 pytest …` writes what came out into the files: the diff is the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = "----"


@dataclass(frozen=True)
class Case:
    """One command of a file: its words, the lines of its input, and where it stands."""

    command: str
    words: dict[str, str]
    input: str
    expected: str
    where: str


def cases(path: Path) -> Iterator[tuple[list[str], Case]]:
    """The blocks of a file: the lines up to the separator, and the case."""
    text = path.read_text().strip("\n")
    for block in re.split(r"\n\n+", text):
        lines = block.split("\n")
        meant = [at for at, line in enumerate(lines) if not line.startswith("#")]
        if not meant:
            yield lines, Case("", {}, "", "", path.name)
            continue
        cut = lines.index(SEPARATOR)
        command, *words = lines[meant[0]].split()
        pairs = dict(word.split("=", 1) if "=" in word else (word, "") for word in words)
        body, expected = "\n".join(lines[meant[0] + 1 : cut]), "\n".join(lines[cut + 1 :])
        yield lines[:cut], Case(command, pairs, body, expected, f"{path.name}: {lines[meant[0]]}")


def run(path: Path, answer: Callable[[Case], str]) -> None:
    """Check every case of a file against what `answer` gives for it, in order."""
    blocks = []
    for head, case in cases(path):
        if not case.command:
            blocks.append("\n".join(head))
            continue
        found = answer(case)
        blocks.append("\n".join([*head, SEPARATOR, found]))
        if not os.environ.get("REWRITE"):
            assert found == case.expected, f"{case.where}\n{found}"
    if os.environ.get("REWRITE"):
        path.write_text("\n\n".join(blocks) + "\n")

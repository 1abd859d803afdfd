"""Finding cases in vector files, running each with the adapter of its kind, and counting."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import arrangement, batching, buckets, chunks, compaction, correction, validators, windows

Adapter = Callable[[dict[str, Any]], None]
"""Runs one case against the real modules; raises, saying what differs, where they do not do what it says."""

ADAPTERS: dict[str, Adapter] = {
    **arrangement.KINDS,
    **compaction.KINDS,
    **validators.KINDS,
    **correction.KINDS,
    **buckets.KINDS,
    **batching.KINDS,
    **windows.KINDS,
    **chunks.KINDS,
}


@dataclass(frozen=True)
class Case:
    """One case of a file; `kind` says which adapter runs it."""

    file: str
    kind: str
    name: str
    content: dict[str, Any]


def cases(path: Path) -> Iterator[Case]:
    """The cases of a vector file: the objects with an id in its lists. Their kind is said, or their list's name."""
    for section, members in json.loads(path.read_text()).items():
        for member in members if isinstance(members, list) else ():
            kind = member.get("kind", section) if section == "cases" else section
            yield Case(path.name, kind, member["id"], member)


def failure(case: Case) -> str | None:
    """Why a case fails, in one line; None if it passes."""
    adapter = ADAPTERS.get(case.kind)
    if adapter is None:
        return f"kind {case.kind} is not supported"
    try:
        adapter(case.content)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def run(folder: Path, say: Callable[[str], None]) -> tuple[int, int]:
    """Run all vector files of a folder, saying what fails; how many cases passed and failed."""
    passed = failed = 0
    for path in sorted(folder.glob("*.json")):
        for case in cases(path):
            reason = failure(case)
            passed, failed = passed + (reason is None), failed + (reason is not None)
            if reason is not None:
                say(f"{case.file} {case.name}: {reason}")
    return passed, failed

"""Finding cases in vector files, running each with the adapter of its kind, and counting."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import arrangement, batching, buckets, chunks, compaction, correction, cuts, validators, windows
from tests.conformance.window_declared import asked

Adapter = Callable[[dict[str, Any]], None]
"""Runs one case against the real modules; raises, saying what differs, where they do not do what it says."""

ADAPTERS: dict[str, Adapter] = {
    **arrangement.KINDS,
    **compaction.KINDS,
    **validators.KINDS,
    **correction.KINDS,
    **buckets.KINDS,
    **batching.KINDS,
    **cuts.KINDS,
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


@dataclass(frozen=True)
class Outcome:
    """Why a case fails, in one line (None: it passes). Of a case of windows also why the law alone answers it, or some
    of it: what of it no collection file can declare, or production computes by Spark only."""

    failure: str | None
    by_the_law: tuple[str, ...] = ()
    law_only: bool = False
    """Whether production answered nothing of it."""
    computed: bool = False
    """Whether production computed windows for it."""


def outcome(case: Case) -> Outcome:
    """The outcome of running a case."""
    adapter = ADAPTERS.get(case.kind)
    if adapter is None:
        return Outcome(f"kind {case.kind} is not supported")
    reason = None
    with asked() as who:
        try:
            adapter(case.content)
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return Outcome(reason, tuple(who.law_only), bool(who.law_only) and not who.production, who.computed)


def failure(case: Case) -> str | None:
    """Why a case fails, in one line; None if it passes."""
    return outcome(case).failure


@dataclass
class Counts:
    """How many cases passed, how many failed, and of how many that passed the law alone answered."""

    passed: int = 0
    failed: int = 0
    law_only: int = 0


def run(folder: Path, say: Callable[[str], None]) -> Counts:
    """Run all vector files of a folder, saying what fails, and which cases are law-only and why."""
    counts = Counts()
    for path in sorted(folder.glob("*.json")):
        for case in cases(path):
            found = outcome(case)
            if found.failure is not None:
                counts.failed += 1
                say(f"{case.file} {case.name}: {found.failure}")
                continue
            counts.passed += 1
            if found.law_only:
                counts.law_only += 1
                say(f"{case.file} {case.name}: law-only: {'; '.join(found.by_the_law)}")
    return counts

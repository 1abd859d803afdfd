"""Commit times: ascending, found again, and few in a state however many there are."""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from itertools import accumulate

import pytest

from tests.support.drawn import ref
from tidemark.model.commit_times import FAN_IN, RECENT, CommitRun, CommitTimes, SealCommit
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.storage.documents.codec import encode
from tidemark.storage.sidecars import commit_runs
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


def test_lines_are_found_again_whatever_the_clock_does() -> None:
    dice, store, commits = random.Random(1), MemoryStore("memory://m"), CommitTimes()
    clock = list(accumulate((dice.randint(-3, 9) for _ in range(9 * RECENT)), initial=100))[1:]
    lines = [SealCommit(at, seal) for seal, at in enumerate(accumulate(clock, max), start=1)]
    for seal, at in enumerate(clock, start=1):
        commits = commits.moved(at, seal)
        if seal % 7 == 0 and (stored := commit_runs.store_recent(store, f"commits/{seal}.json", commits)):
            assert commits.stored(*stored) is not None
            commits = commits.stored(*stored) or commits
    assert len(commits.runs) > 1
    assert list(commit_runs.all_lines(store, commits)) == lines
    times = [line.at for line in lines]
    for at in range(times[0] - 2, times[-1] + 2):
        behind = bisect_right(times, at)
        assert commit_runs.last_line(store, commits, at) == (lines[behind - 1] if behind else None), at


def test_ten_years_of_minutes_are_a_few_kilobytes_of_a_state() -> None:
    """What `store_recent` would write is only counted here."""
    runs: tuple[CommitRun, ...] = ()
    written = most = largest = 0
    minutes, recent = 10 * 365 * 24 * 60, tuple(SealCommit(10**15 + n, 10**15 + n) for n in range(RECENT))
    for n in range(minutes // RECENT):
        due = CommitTimes(runs, recent).due()
        assert due is not None
        lines = RECENT + sum(run.commits for run in due)
        run = CommitRun(ref(f"{n:064}"), lines, recent[0], recent[-1], due[0].level + 1 if due else 0)
        runs = (*runs[: len(runs) - len(due)], run)
        written, most, largest = written + lines, max(most, len(runs)), max(largest, lines)
    assert sum(run.commits for run in runs) == minutes // RECENT * RECENT
    assert most <= 60
    assert written <= 4 * minutes, "each line is written four times at most"
    assert largest == RECENT * FAN_IN**3
    assert len(json.loads(encode(CommitTimes(runs, recent)))) == 2
    assert len(encode(CommitTimes(runs, recent))) < 32_000


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (CompactionFunction(), 10),
        (CompactionFunction(29), 30),
        (CompactionFunction(30), 40),
        (CompactionFunction(40, (Rung(20, 10),)), 30),
        (CompactionFunction(2**63 - 1), None),
    ],
)
def test_lines_go_with_the_history_that_they_are_of(function: CompactionFunction, first: int | None) -> None:
    old = CommitRun(ref("old"), 2, SealCommit(1, 10), SealCommit(2, 20))
    in_run = CommitTimes((old,), (SealCommit(3, 30), SealCommit(4, 40)))
    recent = CommitTimes((), tuple(SealCommit(n, 10 * n) for n in range(1, 5)))
    for commits in (in_run, recent):
        left = commits.readable(function).first
        assert (left and left.seal) == first


def test_what_is_stored_must_be_what_the_state_has() -> None:
    commits = CommitTimes((), tuple(SealCommit(n, 10 * n) for n in range(1, 5)))
    run = CommitRun(ref("new"), 3, SealCommit(1, 10), SealCommit(3, 30))
    assert commits.stored((), run) == CommitTimes((run,), (SealCommit(4, 40),))
    trimmed = commits.readable(CompactionFunction(15))
    assert trimmed.stored((), run) is None, "history was merged meanwhile"
    assert CommitTimes((run,), commits.recent[3:]).stored((), run) is None, "another job stored them"
    assert commits.stored(("other",), run) is None

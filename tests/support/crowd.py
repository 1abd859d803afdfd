"""A crowd: processes that live long and commit at once, round after round, some of them killed; and what became of it.

In a round every writer knows the same head and commits a change of its own against it, at the same moment. When all
have been acknowledged, each commits the same change once more, as after a lost reply: that must change nothing, and
leaves all of them at the newest head, ready for the next round.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

from tidemark.jobs.job import fresh_id
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Change, Created
from tidemark.model.interval import Interval
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.log.log import Committed, StateLog
from tidemark.storage.verify.collection import verify_history

WRITERS = 16
_context = multiprocessing.get_context("forkserver")


def change_of(writer: int, number: int) -> Change:
    """What a writer commits in a round: it leaves the state as large as it was."""
    return Attempted(Fence("drain", Interval(writer, writer + 1), f"round {number}"))


@dataclass(frozen=True)
class Answer:
    """What a writer's commit came to, and the conditional creates it took."""

    fresh: bool
    head: tuple[int, str]
    creates: int


@dataclass
class Tally:
    """What a crowd did. `died`: how many of the killed had not answered. `seconds` are those of the commits, their
    repetitions not counted."""

    acknowledged: list[Change] = field(default_factory=list)
    abandoned: list[Change] = field(default_factory=list)
    kills: int = 0
    died: int = 0
    creates: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def commits(self) -> int:
        return len(self.acknowledged)

    @property
    def retries(self) -> int:
        """Conditional creates that lost: each meant folding what others did, and another one."""
        return self.creates - self.commits


class Writer:
    """One process of the crowd, seen from outside."""

    def __init__(self, url: str, number: int) -> None:
        self.url, self.number = url, number
        self.start()

    def start(self) -> None:
        self.pipe, theirs = _context.Pipe()
        arguments = (self.url, self.number, theirs, dict(os.environ))
        self.process = _context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.killed = False

    def kill(self) -> None:
        """End it at once, wherever it is."""
        self.process.kill()
        self.process.join()
        self.killed = True

    def answer(self) -> Answer | None:
        """Its answer; None if it died before it gave one."""
        try:
            answer: Answer = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            assert self.killed, f"writer {self.number} died by itself; its trace is on standard error"
            return None
        return answer

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(30)


def crowd(url: str, rounds: int, *, writers: int = WRITERS, chance: random.Random | None = None) -> Tally:
    """Let a crowd commit to the collection at `url`, which exists.

    With a `chance`, one writer is killed in every other round. Of those that had not answered each other one starts
    again and commits its change again, as a task that is retried; the first, the third and so on never do. Raises
    AssertionError if a change counts twice or writers see different heads.
    """
    tally = Tally()
    _context.set_forkserver_preload([__name__, "boto3"])
    running = [Writer(url, number) for number in range(writers)]
    try:
        for writer in running:
            writer.answer()
        for number in range(rounds):
            _round(running, number, tally, chance if number % 2 else None)
    finally:
        for writer in running:
            writer.stop()
    return tally


def _round(running: list[Writer], number: int, tally: Tally, chance: random.Random | None) -> None:
    began = time.perf_counter()
    for writer in running:
        writer.pipe.send(number)
    if chance:
        time.sleep(chance.uniform(0, median(tally.seconds)))
        chance.choice(running).kill()
        tally.kills += 1
    answers = [_acknowledged(writer, number, tally) for writer in running]
    if not chance:  # a new process takes longer than a round, and a kill must come within one
        tally.seconds.append(time.perf_counter() - began)
    repeating = [writer for writer, answer in zip(running, answers, strict=True) if answer]
    for writer in repeating:
        writer.pipe.send(number)
    repeated = [writer.answer() for writer in repeating]
    assert not any(answer.fresh for answer in repeated if answer), f"round {number}: a change was repeated"
    heads = {answer.head for answer in repeated if answer}
    assert len(heads) == 1, f"round {number}: the writers know different heads: {heads}"


def _acknowledged(writer: Writer, number: int, tally: Tally) -> Answer | None:
    """A writer's acknowledgement, which may take a new process; None if it died before and does not come back to it."""
    answer, change = writer.answer(), change_of(writer.number, number)
    if writer.killed:
        writer.start()
        writer.answer()
        if answer is None:
            tally.died += 1
            if tally.died % 2:
                tally.abandoned.append(change)
                return None
            writer.pipe.send(number)
            answer = writer.answer()
    else:
        assert answer
        assert answer.fresh, f"round {number}: the change of writer {writer.number} was there before"
    assert answer
    tally.acknowledged.append(change)
    tally.creates += answer.creates
    return answer


def nothing_lost_or_repeated(url: str, tally: Tally) -> None:
    """AssertionError unless the log tells of every acknowledged change once, of no abandoned one twice, of nothing
    else, and its chain of hashes is whole."""
    log = StateLog(open_store(url), fresh_id)
    found = Counter(record.change for record in log.history() if not isinstance(record.change, Created))
    assert max(found.values()) == 1, f"committed more than once: {found.most_common(1)}"
    lost = set(tally.acknowledged) - set(found)
    assert not lost, f"{len(lost)} of {len(tally.acknowledged)} acknowledged changes are lost: {min(map(str, lost))}"
    foreign = set(found) - set(tally.acknowledged) - set(tally.abandoned)
    assert not foreign, f"nobody made {min(map(str, foreign))}"
    assert len(tally.acknowledged) == len(set(tally.acknowledged))
    assert list(verify_history(log)) == []


class _Counted:
    """A store that counts the creates asked of it."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner, self.creates = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, key: str, data: bytes) -> None:
        self.creates += 1
        self._inner.create(key, data)


def _work(url: str, number: int, pipe: Connection, environment: dict[str, str]) -> None:
    """A writer's life: it says when it is ready; given a round's number, it commits and answers. The pipe ends it."""
    os.environ.update(environment)
    store: Any = _Counted(open_store(url))
    log = StateLog(store, fresh_id, writer=f"writer {number}")
    head = log.load()
    pipe.send(Answer(False, (head.version, head.sha256), 0))
    while True:
        try:
            round_number = pipe.recv()
        except EOFError:
            return
        before = store.creates
        committed = log.commit(head, change_of(number, round_number))
        assert isinstance(committed, Committed)
        head = committed.head
        pipe.send(Answer(committed.fresh, (head.version, head.sha256), store.creates - before))

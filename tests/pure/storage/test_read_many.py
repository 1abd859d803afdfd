"""Many objects read at once come in order, a bounded number ahead of who asks."""

from __future__ import annotations

import threading
import time

import pytest

from tidemark.storage.read_many import AHEAD, FEW, READERS, read_many


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1, 3 * AHEAD + 7])
def test_answers_come_in_order(count: int):
    assert list(read_many(lambda item: item * 2, range(count))) == [2 * item for item in range(count)]


def test_many_are_read_at_once():
    barrier = threading.Barrier(READERS, timeout=20)

    def read(item: int) -> int:
        if item < READERS:
            barrier.wait()  # none goes on before all have come
        return item

    assert list(read_many(read, range(FEW + 1))) == list(range(FEW + 1))


def test_so_few_as_are_declared_few_are_read_one_after_the_other():
    threads: set[int] = set()

    def read(item: int) -> int:
        threads.add(threading.get_ident())
        return item

    assert list(read_many(read, range(3), few=3)) == [0, 1, 2]
    assert threads == {threading.get_ident()}
    assert list(read_many(read, range(3), few=2)) == [0, 1, 2]
    assert len(threads) > 1


def test_what_is_not_asked_for_any_more_is_not_read():
    begun: list[int] = []
    let_go = threading.Event()

    def read(item: int) -> int:
        begun.append(item)
        if item:
            let_go.wait(20)
        return item

    answers = read_many(read, range(300), few=1)
    assert next(answers) == 0
    threading.Timer(0.5, let_go.set).start()
    answers.close()
    assert len(begun) <= READERS + 1


def test_what_was_not_asked_for_yet_is_not_all_read():
    asked: list[int] = []

    def read(item: int) -> int:
        asked.append(item)
        return item

    answers = read_many(read, range(10 * AHEAD))
    assert next(answers) == 0
    time.sleep(0.05)
    assert len(asked) <= AHEAD


def test_the_first_failure_is_raised_in_its_place():
    def read(item: int) -> int:
        if item >= 200:
            raise ValueError(item)
        return item

    answers = read_many(read, range(300))
    assert [next(answers) for _ in range(200)] == list(range(200))
    with pytest.raises(ValueError, match="200"):
        next(answers)

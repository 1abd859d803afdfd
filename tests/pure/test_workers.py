"""Before the first tasks of a worker what it has loaded is set aside from garbage collections; nothing after them."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidemark
from tidemark.spark.workers import in_workers

pytestmark = pytest.mark.pure
PACKAGE = Path(tidemark.__file__).parent
TASKS = """
import gc
from tidemark.spark.workers import LOADING, in_workers

kernel, frozen, kept = in_workers(lambda rows: (row + 1 for row in rows)), [gc.get_freeze_count()], []
for task in range(LOADING + 2):
    kept.append([[] for _ in range(1000)])  # as if a module was loaded
    assert list(kernel(iter([task]))) == [task + 1]
    frozen.append(gc.get_freeze_count())
print([after - before > 900 for before, after in zip(frozen, frozen[1:])])
"""


def test_the_first_tasks_set_aside_what_is_there_and_later_ones_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", TASKS], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[True] * 3 + [False] * 2}\n"


def doubled(rows: Iterator[int]) -> Iterator[int]:
    return (2 * row for row in rows)


def test_it_can_be_sent_to_a_worker() -> None:
    kernel = pickle.loads(pickle.dumps(in_workers(doubled)))  # type: ignore[arg-type]
    assert kernel.args == (doubled,)


def test_every_kernel_is_sent_so() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "mapInArrow":
                found.append((path.name, ast.unparse(node.args[0]).partition("(")[0]))
    assert len(found) > 10
    assert {by for _, by in found} == {"in_workers"}, found

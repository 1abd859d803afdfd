"""One step in a process of its own, as far as it needs no Spark: a child of an Airflow task."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tidemark.jobs import app

NEEDS_SPARK = "needs_spark"
"""What the result says of a step that has to be run by Spark; nothing of it was committed."""


def main(step: str, argv: Sequence[str], parallelism: int | None) -> int:
    """Run a step, and print its result as the last line of standard output: `{"needs_spark": true}` where only Spark
    can do it.

    Args:
        step: The step's name.
        argv: Its arguments, as its Spark app takes them.
        parallelism: As of `app.without_spark`.

    Returns:
        The exit code of errors.py.
    """
    return app.answered(step, lambda: _result(step, argv, parallelism))


def _result(step: str, argv: Sequence[str], parallelism: int | None) -> dict[str, Any]:
    result = app.without_spark(step, argv, parallelism=parallelism)
    return {"step": step, NEEDS_SPARK: True} if result is None else result


if __name__ == "__main__":
    from tidemark.resident.guard import die_with_parent

    parent, parallelism, step, *argv = sys.argv[1:]
    die_with_parent(int(parent))
    sys.exit(main(step, argv, int(parallelism) if parallelism else None))

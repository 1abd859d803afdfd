"""What the answers of tasks must add up to before anything of them is committed."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.errors import Corruption
from tidemark.model.batch import DIGEST_MODULUS
from tidemark.plan.tasks import WriteAnswer


def check_sums(answers: Sequence[WriteAnswer]) -> int:
    """Consolidation keeps the sum of hash times diff: per task, what was written must add up to what was read.

    Returns the whole sum; raises Corruption if a task's sums differ.
    """
    for number, answer in enumerate(answers):
        written = sum(part.digest for part in answer.parts) % DIGEST_MODULUS
        if written != answer.digest_read:
            raise Corruption(f"task {number} read a sum of {answer.digest_read:016x} and wrote {written:016x}; refused")
    return sum(answer.digest_read for answer in answers) % DIGEST_MODULUS


def check_rows(what: str, answers: Sequence[WriteAnswer], *, least: int, most: int) -> None:
    """Every row that is wholly within what was asked for was read, and no more than may. Corruption otherwise."""
    read = sum(answer.rows_read for answer in answers)
    if not least <= read <= most:
        raise Corruption(f"{what} read {read} rows, its batches hold {least} to {most}")

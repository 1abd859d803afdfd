"""The unsealed gate of derived collections: counts that reconcile, and keys that are computed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.plain_computer import PlainComputer
from simulation.plain_definitions import BIG, COUNTS, derived
from simulation.script import row
from simulation.sea import Sea, write_by_hand
from tidemark.definition.computation import Differing
from tidemark.errors import GateFailed, InvalidUsage
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.gate import gate
from tidemark.model.collection import Gate

ROWS = [row(1, "a", 3), row(2, "b", 4), row(3, "b", 5)]


@pytest.mark.parametrize("select", [BIG, COUNTS])
def test_what_was_computed_passes_and_what_was_not_is_stopped(tmp_path: Path, select: str) -> None:
    sea = Sea(tmp_path)
    sea.landed("tides")
    sea.add(derived("d", select))
    sea.ingest("tides", 0, ("a", ROWS))
    sea.correct("d", until="correct")
    passed = sea.run("d", lambda job: gate(job, Gate.UNSEALED))
    assert len(passed["batches"]) == 1
    assert sea.run("d", verify_definition).sound
    sea.correct("d")
    lost = max(sea.rows_as_of("d", 100))
    write_by_hand(sea, "d", {lost: -1})
    with pytest.raises(
        GateFailed, match=r"definition of batch.*1 recomputed keys 1 rows.*: 1 times, stored 0 times"
    ) as said:
        sea.run("d", lambda job: gate(job, Gate.UNSEALED))
    assert "correct d --check" in str(said.value)
    report = sea.run("d", verify_definition)
    assert [(one.desired, one.stored) for one in report.frontiers[0].differing] == [(1, 0)]
    assert not report.sound


def test_a_batch_that_holds_other_rows_than_its_commit_says_is_stopped(tmp_path: Path) -> None:
    sea = Sea(tmp_path)
    sea.landed("tides")
    sea.add(derived("d", COUNTS))
    sea.ingest("tides", 0, ("a", ROWS))
    sea.correct("d")
    write_by_hand(sea, "d", {max(sea.rows_as_of("d", 100)): -1}, reported_retractions=2)
    with pytest.raises(GateFailed, match=r"rows retracted as recorded.*retracts 1 rows, 2 were recorded"):
        sea.run("d", lambda job: gate(job, Gate.UNSEALED))


def test_a_definition_that_raises_for_a_key_computed_again_passes_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that cannot be compared are one case. A definition that raises is another: the batch is not certified."""
    sea = Sea(tmp_path)
    sea.landed("tides")
    sea.add(derived("d", COUNTS))
    sea.ingest("tides", 0, ("a", ROWS))
    sea.correct("d", until="correct")

    def raises(*_: object, **__: object) -> tuple[Differing, ...]:
        raise InvalidUsage("the definition of d raises DIVIDE_BY_ZERO for the row id 1")

    with monkeypatch.context() as patched:
        patched.setattr(PlainComputer, "compare", raises)
        with pytest.raises(InvalidUsage, match="DIVIDE_BY_ZERO for the row id 1"):
            sea.run("d", lambda job: gate(job, Gate.UNSEALED))
    assert not sea.worlds["d"].state.certificates
    assert len(sea.run("d", lambda job: gate(job, Gate.UNSEALED))["batches"]) == 1

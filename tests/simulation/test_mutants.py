"""Realistic mistakes in one line of the product, each with a law of this ring that notices it.

tests/support/mutants.py makes them. Those that a law of values or kernels shows are in tests/pure/test_mutants.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from simulation import test_clock_steps, test_cuts, test_exactly_once, test_order_law
from simulation.script import row
from simulation.script import world as world_of_days
from support.mutants import Mutant, check_caught
from support.world import World
from tidemark.jobs.steps import collect
from tidemark.model.collection import Envelope
from tidemark.model.transition import unsealed
from tidemark.plan import ingest
from tidemark.storage.log.log import StateLog
from tidemark.storage.log.written import Written
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.simulation
Law = Callable[[Path], None]


@pytest.fixture(autouse=True)
def read_once() -> None:
    """What the right code made of a version is not remembered for the mutant."""


def in_world(test: Callable[..., None], *more: Any) -> Law:
    """A law of a few days, in a world whose next file has landed."""

    def law(folder: Path) -> None:
        world: World = world_of_days(folder, Envelope.APPEND, MemoryStore())
        world.land(4, "a", [row(9, "new", 41)])
        test(world, folder, *more)

    return law


def a_touched_file_is_not_counted_again(folder: Path) -> None:
    law, cases = test_exactly_once.test_a_file_that_comes_again_is_not_counted_again, test_exactly_once
    with pytest.MonkeyPatch.context() as patch:
        law(folder, patch, Envelope.APPEND, cases.nothing, cases.touched)


def of_two_ingests_at_once_each_file_counts_in_one(folder: Path) -> None:
    test_exactly_once.test_of_two_ingests_at_once_each_file_counts_in_one(folder, "create", after=False, other=1)


to_and_fro = test_clock_steps.test_a_clock_that_goes_a_day_to_and_fro_while_collectors_work_takes_nothing_early

MUTANTS = [
    # The order of runs.
    Mutant(
        "a row is judged by what is complete, not by its interval's turn",
        ingest.plan_ingest,
        "(max(state.complete_below, turn), ",
        "(state.complete_below, ",
        test_order_law.test_a_day_read_before_the_one_before_it_has_the_same_late_rows,
    ),
    # The log and the collector.
    Mutant(
        "a commit looks for what it names only where a collector committed",
        Written.lost,
        "if self._looked and not self._sweeps:",
        "if not self._sweeps:",
        in_world(test_clock_steps.test_an_attempt_whose_objects_were_removed_meanwhile_writes_them_again),
    ),
    Mutant(
        "a commit does not ask a collector's plan what is about to go",
        Written.follows,
        "self._sweeps.append(other.fence.token)",
        "self._looked = False",
        in_world(test_clock_steps.test_what_a_misled_collector_is_about_to_remove_is_not_committed),
    ),
    *(
        Mutant(
            f"a collector believes a clock that goes {way} and returns",
            collect._Search.distrusted,
            "stepped(self.began, after) or disagreement(",
            "stepped(self.began, after) and disagreement(",
            in_world(to_and_fro, hours * 3600.0, every),
        )
        for way, hours, every in (("back", -25, 5), ("ahead", 25, 8))
    ),
    # What was ingested.
    Mutant(
        "a file that was touched is new",
        ingest.is_new,
        "entry is None or entry.status is Status.FREED",
        "entry is None or entry.status is Status.FREED or entry.token != file.token",
        a_touched_file_is_not_counted_again,
    ),
    Mutant(
        "a file of the same size has not changed",
        ingest._corrected,
        "file.sha256 != entry.sha256",
        "file.bytes != entry.bytes",
        test_exactly_once.test_other_content_under_a_known_name_is_refused_at_any_age,
    ),
    Mutant(
        "an ingest does not look which files another one took meanwhile",
        StateLog._caught_up,
        "if not mine and (stale := conflict(",
        "if mine and (stale := conflict(",
        of_two_ingests_at_once_each_file_counts_in_one,
    ),
    Mutant(
        "an interval of which a batch was cut counts as read",
        unsealed.ingested,
        "fence.step in (CUT, REPLAY)",
        "fence.step == REPLAY",
        test_cuts.test_a_cut_completes_nothing_and_the_reason_is_recorded,
    ),
]


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    folders = (tmp_path / str(number) for number in count())

    def law() -> None:
        folder = next(folders)
        folder.mkdir()
        mutant.law(folder)

    check_caught(mutant, law, monkeypatch)

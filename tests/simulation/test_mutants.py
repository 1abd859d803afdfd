"""Implementations that are broken on purpose: each is caught by a test that the real one passes. If one is caught no
more, that test has lost its sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pure.storage import test_log, test_low_water
from simulation import test_clock_steps
from simulation.script import row
from simulation.script import world as world_of_days
from support.stores import Stores
from support.world import World
from tidemark.errors import CommitUnknown, Contention, Fenced
from tidemark.jobs.steps import collect as collector
from tidemark.model.collection import Envelope
from tidemark.storage.log.log import StateLog
from tidemark.storage.log.written import Written
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate

pytestmark = pytest.mark.simulation
CAUGHT = (AssertionError, pytest.fail.Exception, Contention, CommitUnknown, Fenced)
"""How a test fails: by what it asserts, by an error that it expects and does not get, or by one that it gets."""


def caught(law: Callable[[], None], patch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None]) -> None:
    law()
    mutate(patch)
    with pytest.raises(CAUGHT):
        law()


def recreates_what_was_collected(patch: pytest.MonkeyPatch) -> None:
    """A writer that stood still, was fenced off and whose number was collected meanwhile creates that number again, and
    takes it for its commit."""
    patch.setattr(StateLog, "_check_not_stray", lambda self, created: None)


@pytest.mark.parametrize("version", [1, 4, 16, 31])
def test_a_writer_that_takes_a_collected_version_for_its_commit_is_caught(version: int, monkeypatch):
    def law() -> None:
        test_low_water.test_no_stray_misleads_a_reader_whatever_its_number(version)

    caught(law, monkeypatch, recreates_what_was_collected)


def test_a_fenced_writer_that_recreates_a_collected_version_is_caught_by_its_number(monkeypatch):
    caught(
        test_low_water.test_frozen_before_the_create_of_a_number_that_was_collected,
        monkeypatch,
        recreates_what_was_collected,
    )


def takes_its_own_for_another_s(patch: pytest.MonkeyPatch) -> None:
    """A create whose answer was lost succeeded; its writer finds the version and takes it for another one's."""
    real = StateLog._caught_up
    patch.setattr(StateLog, "_caught_up", lambda self, head, written, identity: real(self, head, written, "another"))


@pytest.mark.parametrize("error", [AlreadyExists, Indeterminate])
def test_a_lost_answer_that_is_taken_for_a_conflict_is_caught(error: type[Exception], stores: Stores, monkeypatch):
    def law() -> None:
        test_log.test_a_lost_reply_is_found_to_be_one_s_own(stores, error)

    caught(law, monkeypatch, takes_its_own_for_another_s)


def does_not_look(patch: pytest.MonkeyPatch) -> None:
    """What a collector deleted between a write and its commit is named by the commit all the same."""
    patch.setattr(Written, "lost", lambda self: None)


def world(folder: Path) -> World:
    folder.mkdir()
    made = world_of_days(folder, Envelope.APPEND, MemoryStore())
    made.land(4, "a", [row(9, "new", 41)])
    return made


@pytest.mark.usefixtures("nothing_is_small")
def test_a_collector_that_deletes_between_write_and_commit_is_caught(tmp_path: Path, monkeypatch):
    folders = iter([tmp_path / "real", tmp_path / "mutant"])

    def law() -> None:
        folder = next(folders)
        test_clock_steps.test_an_attempt_whose_objects_were_removed_meanwhile_writes_them_again(world(folder), folder)

    caught(law, monkeypatch, does_not_look)


def does_not_ask_the_plan(patch: pytest.MonkeyPatch) -> None:
    """A collector has committed and will delete; a writer that looks only finds all that it wrote."""
    patch.setattr(Written, "follows", lambda self, other: None)


@pytest.mark.parametrize("mutate", [does_not_look, does_not_ask_the_plan])
def test_a_collector_that_is_about_to_delete_what_is_committed_is_caught(tmp_path: Path, monkeypatch, mutate):
    folders = iter([tmp_path / "real", tmp_path / "mutant"])

    def law() -> None:
        folder = next(folders)
        test_clock_steps.test_what_a_misled_collector_is_about_to_remove_is_not_committed(world(folder), folder)

    caught(law, monkeypatch, mutate)


def believes_the_clock(patch: pytest.MonkeyPatch) -> None:
    """A collector that takes what the store's clock says for time that passed."""
    patch.setattr(collector._Search, "distrusted", lambda self, job, plan, now: None)


@pytest.mark.parametrize(("hours", "every"), [(-25, 5), (25, 8)])
def test_a_collector_that_believes_a_clock_that_goes_to_and_fro_is_caught(
    tmp_path: Path, monkeypatch, hours: int, every: int
):
    folders = iter([tmp_path / "real", tmp_path / "mutant"])

    def law() -> None:
        folder = next(folders)
        test_clock_steps.test_a_clock_that_goes_a_day_to_and_fro_while_collectors_work_takes_nothing_early(
            world(folder), folder, hours * 3600.0, every
        )

    caught(law, monkeypatch, believes_the_clock)

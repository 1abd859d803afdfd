"""The simulation ring again, on S3: faults of single calls, lost acknowledgements, races, bad files, quarantines."""

from __future__ import annotations

import pytest

from simulation.test_bad_files import (
    test_a_mended_file_is_taken_after_the_refusal,
    test_a_refusal_that_comes_after_the_mended_file_was_counted_changes_nothing,
)
from simulation.test_faults import (
    clean,
    test_any_single_fault_then_the_step_again_changes_nothing,
    test_lost_acknowledgements_leave_the_same_answers_and_the_same_objects,
)
from simulation.test_quarantine import (
    test_a_batch_whose_files_the_ledger_no_longer_tells_of_is_not_put_back,
    test_a_file_is_counted_once_whichever_way_its_batch_comes_back,
    world,
)
from simulation.test_races import test_threads_that_commit_at_once, test_whole_runs_at_once_count_every_row_once

pytestmark = pytest.mark.s3

__all__ = [
    "clean",
    "test_a_batch_whose_files_the_ledger_no_longer_tells_of_is_not_put_back",
    "test_a_file_is_counted_once_whichever_way_its_batch_comes_back",
    "test_a_mended_file_is_taken_after_the_refusal",
    "test_a_refusal_that_comes_after_the_mended_file_was_counted_changes_nothing",
    "test_any_single_fault_then_the_step_again_changes_nothing",
    "test_lost_acknowledgements_leave_the_same_answers_and_the_same_objects",
    "test_threads_that_commit_at_once",
    "test_whole_runs_at_once_count_every_row_once",
    "world",
]

"""What is particular to format 1: late rows that had to wait for a day, and files that cannot be corrected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.relanded import relanded
from support.world import interval
from tests.compat.make_v1 import COLLECTIONS, DAYS, V1, pass_day, reader
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("newest", [47, 48], ids=["from changes", "from a checkpoint"])
def test_late_rows_that_waited_for_a_day_to_come_are_learned_without_one(tmp_path: Path, newest: int):
    copy = tmp_path / "appended"
    shutil.copytree(V1 / "appended", copy)
    for path in copy.glob("versions/*/*.json"):
        if int(path.stem) > newest:
            path.unlink()
    made = reader(copy, "appended")
    assert (made.state.complete_below, made.state.seal) == (50, 50)
    before = as_of(made.truth, made.state)
    made.run(lambda job: seal(job, interval(4)))
    assert (made.state.complete_below, made.state.seal) == (50, 51)
    assert as_of(made.truth, made.state, time=49) == before
    assert as_of(made.truth, made.state) != before
    assert made.run(lambda job: seal(job, interval(4)))["outcome"] == "nothing to do"


def test_what_was_ingested_in_format_1_is_not_corrected_and_what_comes_after_is(tmp_path: Path):
    """Nothing was kept to correct it by: refused with the instant from which on files are, and nothing is lost."""
    copy = tmp_path / "updated"
    shutil.copytree(V1 / "updated", copy)
    made = reader(copy, "updated", tmp_path / "landing")
    made.run(lambda job: declare_collection(job, relanded(COLLECTIONS["updated"], reprocess_for=1000)))
    before = as_of(made.truth, made.state)
    made.land(2, "a", [])
    with pytest.raises(
        InvalidUsage, match=r"changed after it was ingested: .*; reprocess_for 1ms lets intervals be corr"
    ):
        made.run(lambda job: ingest(job, interval(2), landing_root=str(made.landing)))
    assert as_of(made.truth, made.state) == before
    last = DAYS["updated"]
    pass_day(made, "updated", last)
    made.land(last, "a", [])
    done = made.run(lambda job: ingest(job, interval(last), landing_root=str(made.landing)))
    assert (done["corrected"], done["added"]) == (1, 0)
    assert done["retracted"] > 0

"""Days of few rows advance in this process, derived collections of plain groups too, with no session started; all that
is kept is what Spark keeps of the same files: batches, parts and rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import ALL, Made, day_of, no_spark
from tests.support.budget import budget
from tidemark.arrow.read import updates_of
from tidemark.jobs.advance import advance
from tidemark.jobs.computer import here_or_on_spark
from tidemark.jobs.in_process_runner import BySize
from tidemark.jobs.job import Job
from tidemark.jobs.steps.init import declare
from tidemark.model.batch import Part
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.spark.runner import SparkRunner
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark
DAYS = 3
"""On the last of which batches are compacted."""


def here(job: Job) -> Job:
    """A job as the command line has it, on which no session can be had."""
    return replace(job, runner=lambda: BySize(job.store, no_spark, 2, job.note), computer_on=here_or_on_spark)


def by_spark(job: Job, spark: Any) -> Job:
    return replace(job, runner=lambda: SparkRunner(spark, job.store.url))


def advanced(job: Job, made: Made, day: int) -> dict[str, Any]:
    landing = {"ingest": {"landing_root": str(made.landing), "as_landed": True}}
    return advance(job, day_of(day).upper, {} if job.log.load().state.collection.is_derived else landing)


def kept(job: Job) -> dict[str, Any]:
    """What a state says of the content, and every update at rest, in order; ids are drawn again each time."""
    state = job.log.load().state
    request = plan_updates(state)
    opened = parts_table.opened_read(job.store, request)[1]
    tasks = read_tasks(request, opened, target_rows=2**30)
    names = [column.name for column in (*state.collection.columns, *state.collection.hidden)]
    rows = [repr(row) for task in tasks for some in updates_of(job.store, task, names) for row in some.to_pylist()]

    def figures(part: Part) -> tuple[Any, ...]:
        return (part.rows, part.digest, part.groups, part.first_time, part.last_time, part.retractions)

    parts = [figures(part) for batch in state.trace for part in parts_table.parts_of(job.store, [batch])]
    frontiers = (state.complete_below, state.seal, state.trace_upper, state.since)
    return {"rows": rows, "parts": parts, "frontiers": frontiers, "unsealed": [batch.rows for batch in state.unsealed]}


@pytest.mark.parametrize("envelope", budget(ci=["upsert"], deep=list(ALL)))
def test_days_of_few_rows_are_kept_as_spark_keeps_them(spark: Any, tmp_path: Path, envelope: str) -> None:
    found = []
    for where, runs in {"here": here, "spark": lambda job: by_spark(job, spark)}.items():
        folder = tmp_path / where
        folder.mkdir()
        made = Made(folder, ALL[envelope])
        declare(made.job(), str(made.file))
        outcomes = []
        for day in range(1, DAYS + 1):
            made.land(day, 20, keys=12)
            report = advanced(runs(made.job()), made, day)
            outcomes.append([(one["step"], one["outcome"], one.get("rows")) for one in report["steps"]])
        found.append((outcomes, kept(made.job())))
    assert found[0] == found[1]
    assert len(found[0][1]["rows"]) > 20
    assert ("compact", "applied") in {one[:2] for one in found[0][0][-1]}

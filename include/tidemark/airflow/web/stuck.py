"""Runs that Airflow will never start: a cancelled backfill stays paused, and so does a run of its that is cleared
(https://github.com/apache/airflow/issues/72337). It is queued for ever, and nothing says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow.models.backfill import Backfill
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from sqlalchemy import select

from tidemark.airflow.web.markup import Markup, tag
from tidemark.model.instant import format_instant, from_datetime

MOST = 10
"""Runs that are listed of one DAG."""


@dataclass(frozen=True)
class StuckRun:
    """A queued run of a cancelled backfill, and the bounds of its interval as people write them."""

    run_id: str
    lower: str
    upper: str


def stuck_runs(dag_id: str) -> list[StuckRun]:
    """The first runs of a DAG, by interval, that are queued and belong to a cancelled backfill."""
    asked = (
        select(DagRun.run_id, DagRun.data_interval_start, DagRun.data_interval_end)
        .join(Backfill, Backfill.id == DagRun.backfill_id)
        .where(DagRun.dag_id == dag_id, DagRun.state == DagRunState.QUEUED)
        .where(Backfill.completed_at.is_not(None), Backfill.is_paused.is_(True))
        .order_by(DagRun.data_interval_start, DagRun.run_id)
        .limit(MOST)
    )
    with create_session() as session:
        found = session.execute(asked).all()
    return [
        StuckRun(run_id, *("" if at is None else format_instant(from_datetime(at)) for at in interval))
        for run_id, *interval in found
    ]


def stuck(runs: Sequence[StuckRun]) -> list[Markup]:
    """What a page says of such runs; nothing where there are none."""
    if not runs:
        return []
    content = [
        tag("h2", "Runs that never start"),
        tag(
            "p",
            "These runs are queued, and Airflow starts no run of a cancelled backfill. ",
            "Trigger a single run with their ",
            tag("code", "lower"),
            " and ",
            tag("code", "upper"),
            ", then mark them as failed.",
            class_="bad",
        ),
        tag("ul", *(tag("li", tag("code", run.run_id), *_bounds(run)) for run in runs)),
    ]
    return [tag("section", *content)]


def _bounds(run: StuckRun) -> list[Markup]:
    if not run.lower or not run.upper:
        return []
    return [tag("span", ": lower "), tag("code", run.lower), tag("span", ", upper "), tag("code", run.upper)]

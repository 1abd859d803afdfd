"""A batch that somebody asks for: the button on the page of a collection that is cut by load, and its last runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from tidemark.airflow.links import BATCHES
from tidemark.airflow.web.markup import Markup, tag
from tidemark.airflow.web.page import table
from tidemark.airflow.web.start import Start, unpause
from tidemark.model.instant import format_duration, format_instant, from_datetime

MOST = 3
"""Runs that are listed."""
SECOND = 1_000_000


@dataclass(frozen=True)
class Run:
    """A run of the DAG of batches. It began and ended then; None: not yet."""

    run_id: str
    state: str
    began: datetime | None
    ended: datetime | None


@dataclass(frozen=True)
class CutRuns:
    """The DAG of a collection's batches: whether it is paused, and its last runs, newest first."""

    paused: bool
    last: Sequence[Run]


def cut_runs_of(name: str) -> CutRuns | None:
    """The runs of a collection's batches; None where Airflow has no such DAG."""
    dag_id = f"{name}{BATCHES}"
    runs = select(DagRun.run_id, DagRun.state, DagRun.start_date, DagRun.end_date).where(DagRun.dag_id == dag_id)
    with create_session() as session:
        paused = session.scalar(select(DagModel.is_paused).where(DagModel.dag_id == dag_id))
        last = session.execute(runs.order_by(DagRun.id.desc()).limit(MOST)).all()
    return None if paused is None else CutRuns(paused, [Run(run, str(state), *times) for run, state, *times in last])


def cut_section(name: str, by_load: tuple[str, str], runs: CutRuns, *, may_start: bool) -> Markup:
    """What cuts a batch of a collection, the button for who `may_start` a run, and what the last runs became.

    Args:
        by_load: The rules, and how long files are left alone, in words.
    """
    rules, settle = by_load
    content = [tag("p", f"What has landed is ingested before its interval is over: {rules}; or when somebody asks.")]
    if may_start:
        dag_id = f"{name}{BATCHES}"
        start = Start("Run", "dag_run_id", f"dags/{dag_id}/dagRuns", dag_id, up="../..")
        content.append(tag("p", start.button("Cut a batch now", {"logical_date": None, "conf": {}})))
        content += unpause("; from then on the rules cut, too") if runs.paused else []
        note = (
            f"A run of {dag_id} takes the files of the interval that goes on, which were left alone for {settle}. The "
            "interval stays open. Where no such file has landed, the run has nothing to do."
        )
    else:
        note = "You may look at it, and not cut: that takes the permission to run the DAG."
    content.append(tag("p", note, class_="quiet"))
    if runs.last:
        content.append(table(("last runs", "", "began", "took"), [_line(run) for run in runs.last]))
    return tag("section", tag("h2", "Batches by load"), *content)


def _line(run: Run) -> tuple[object, ...]:
    class_ = {"success": "good", "failed": "bad"}.get(run.state, "quiet")
    began = "not yet" if run.began is None else tag("time", format_instant(_whole_seconds(run.began)))
    took = "" if run.began is None or run.ended is None else _took(run.began, run.ended)
    return run.run_id, tag("span", run.state, class_=class_), began, took


def _whole_seconds(moment: datetime) -> int:
    return from_datetime(moment) // SECOND * SECOND


def _took(began: datetime, ended: datetime) -> str:
    return format_duration(max(SECOND, round((ended - began).total_seconds()) * SECOND))

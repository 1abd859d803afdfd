"""What a backfill is about, and how Airflow would run it: as the state, the collection's file and the DAG say."""

from __future__ import annotations

from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from sqlalchemy import select

from tidemark.airflow import settings
from tidemark.airflow.collection_files import collection_named
from tidemark.airflow.web.backfill import Runs, Subject
from tidemark.api.pinned import Pinned


def subject_of(name: str, found: Pinned | None) -> Subject | None:
    """The collection as it is, or as its file declares it where no run has created it yet; None where neither is."""
    if found is not None:
        return Subject(name, found.state.collection.origin, found.state.ingested)
    location = collection_named(name)
    return None if location is None else Subject(name, location.origin, there=False)


def runs_of(dag_id: str) -> Runs:
    """How many intervals a run has, how many runs there are at a time, and whether any begins."""
    location = collection_named(dag_id)
    intervals = location.airflow.backfill_intervals if location else None
    asked = select(DagModel.max_active_runs, DagModel.is_paused).where(DagModel.dag_id == dag_id)
    with create_session() as session:
        at_a_time, paused = session.execute(asked).one_or_none() or (None, False)
    return Runs(intervals or settings.backfill_intervals(), at_a_time or 1, bool(paused))

"""A cleared run of a cancelled backfill is queued for ever: the collection's page names it, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.dags.test_web import check_strict

DAY = datetime(2024, 1, 2, tzinfo=UTC)


@pytest.fixture
def session(client: Any) -> Iterator[Any]:
    """A session with Airflow's database, which holds no run before and after."""
    from airflow.models.backfill import Backfill, BackfillDagRun
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    def emptied(session: Any) -> None:
        for kind in (BackfillDagRun, DagRun, Backfill):
            session.execute(delete(kind))
        session.commit()

    with create_session() as session:
        emptied(session)
        yield session
        session.rollback()
        emptied(session)


def run_of(session: Any, day: int, state: str, *, dag: str = "orders", backfill: Any = None) -> Any:
    from airflow.models.backfill import BackfillDagRun
    from airflow.models.dagrun import DagRun
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    start = DAY + timedelta(days=day)
    made = DagRun(
        dag_id=dag,
        run_id=f"backfill__{day}",
        logical_date=start,
        data_interval=(start, start + timedelta(days=1)),
        run_after=start,
        run_type=DagRunType.BACKFILL_JOB if backfill else DagRunType.MANUAL,
        triggered_by=DagRunTriggeredByType.TEST,
        state=state,
        backfill_id=backfill.id if backfill else None,
    )
    session.add(made)
    session.flush()
    if backfill:
        session.add(
            BackfillDagRun(backfill_id=backfill.id, dag_run_id=made.id, logical_date=start, sort_ordinal=day + 1)
        )
    session.commit()
    return made


def backfill_of(session: Any, dag: str = "orders") -> Any:
    from airflow.models.backfill import Backfill

    made = Backfill(dag_id=dag, from_date=DAY, to_date=DAY + timedelta(days=9))
    session.add(made)
    session.commit()
    return made


def cancelled(session: Any, backfill: Any) -> None:
    """As Airflow's own route does it."""
    from airflow.api_fastapi.core_api.routes.public.backfills import cancel_backfill

    cancel_backfill(backfill.id, session)
    session.commit()


def test_a_cleared_run_of_a_cancelled_backfill_is_named_with_the_way_out(client: Any, root: Path, session: Any) -> None:
    backfill = backfill_of(session)
    done = run_of(session, 0, "success", backfill=backfill)
    cancelled(session, backfill)
    assert "never start" not in client.get("/collections/orders").text
    done.state = "queued"  # as clearing it does
    session.commit()
    answer = client.get("/collections/orders")
    check_strict(answer)
    for text in ("Airflow starts no run of a cancelled backfill", "<code>lower</code>", "mark them as failed"):
        assert text in answer.text
    assert "<code>backfill__0</code>" in answer.text
    assert "lower </span><code>2024-01-02T00:00:00Z</code>" in answer.text
    assert "upper </span><code>2024-01-03T00:00:00Z</code>" in answer.text


def test_runs_that_start_sooner_or_later_are_not_named(client: Any, root: Path, session: Any) -> None:
    going_on, over, gone = backfill_of(session), backfill_of(session), backfill_of(session, "others")
    over.completed_at = DAY
    session.commit()
    run_of(session, 0, "queued")
    run_of(session, 1, "queued", backfill=going_on)
    going_on.is_paused = True  # by somebody who may let it go on
    run_of(session, 2, "queued", backfill=over)
    cancelled(session, gone)
    run_of(session, 3, "queued", dag="others", backfill=gone)
    session.commit()
    assert "never start" not in client.get("/collections/orders").text


def test_as_many_as_a_page_can_show_are_named(client: Any, root: Path, session: Any) -> None:
    backfill = backfill_of(session)
    cancelled(session, backfill)
    for day in range(15):
        run_of(session, day, "queued", backfill=backfill)
    page = client.get("/collections/orders").text
    assert page.count("<li><code>") == 10
    assert page.index("backfill__0") < page.index("backfill__9")

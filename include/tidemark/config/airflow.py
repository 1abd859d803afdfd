"""The section of a collection file that says how Airflow runs the collection: `airflow`.

The string below a field is its text in docs/reference/collection-file.md, as those of config/declaration.py are.
Airflow itself is not imported: whoever makes DAGs takes what stands here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from tidemark.config.section import STRICT
from tidemark.config.values import Duration
from tidemark.model.interval import MOST_INTERVALS_OF_RUN

Label = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""What Airflow shows in a list: one line of at most a hundred characters."""


class AirflowSection(BaseModel):
    """How Airflow runs the collection. What is left out is the deployment's, or Tidemark's."""

    model_config = STRICT

    owner: Label | None = None
    """Who is shown as the owner of the DAG and its tasks."""
    tags: list[Label] = []
    """Tags of the DAG, beside `tidemark` and what kind of collection it is."""
    pool: Label | None = None
    """The pool that the tasks take a slot of."""
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    """How often a task is tried again after a failure that may pass; 5 without it. What cannot pass is not tried
    again."""
    retry_delay: Duration | None = None
    """How long before it is tried again, each time; without it 15 s, then twice as long each time."""
    max_active_runs: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many runs of the DAG there may be at a time. Their order is kept whatever that is."""
    backfill_intervals: Annotated[int, Field(ge=1, le=MOST_INTERVALS_OF_RUN)] | None = None
    """How many intervals a run of a backfill is about at most; TIDEMARK_BACKFILL_INTERVALS, 31, without it."""
    overdue: Duration | None = None
    """How long after its end an interval may be unsealed, `3h`; after that it is overdue, and the DAG
    `tidemark_overdue` is red until it is sealed. Of a derived collection the intervals of its inputs count."""


SECTIONS: dict[str, type[BaseModel]] = {"airflow": AirflowSection}
"""By the field that holds it."""

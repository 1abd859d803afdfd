"""Tasks of functions that a collection file names (`after`): handed what their run published, behind `published`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemark.airflow.location import Location

if TYPE_CHECKING:
    from tidemark.config.airflow import TaskSection

_DOC = (
    "Calls `{call}` with {hands} as {form}, under a hold. What it is handed follows what it was handed before without "
    "gap or overlap; cleared, it is handed the same again. Skipped where the run published nothing."
)
_HANDS = {"changes": "the changes that this run published", "as_of": "all rows of the collection at that time"}


def after_tasks(location: Location) -> list[Any]:
    """A task for each function that the collection's file names, in the DAG or group being built. Nothing is imported
    before the task runs."""
    return [_task(location, said) for said in location.airflow.after.seal]


def _task(location: Location, said: TaskSection) -> Any:
    from tidemark.airflow.handed import with_as_of, with_changes  # the decorators of tasks take a while

    def call(handed: Any) -> Any:
        from tidemark.airflow.calls import imported

        return imported(said.call)(handed)

    handing = with_as_of if said.hands == "as_of" else with_changes
    task = handing(
        location.name,
        columns=said.columns,
        where=said.where,
        form=said.form,
        root=location.root,
        task_id=said.task_id,
        doc_md=_DOC.format(call=said.call, hands=_HANDS[said.hands], form=said.form),
    )(call)
    return task()

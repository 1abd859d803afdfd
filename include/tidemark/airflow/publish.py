"""The last task of a run: tell the rest of Airflow what was newly sealed."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from tidemark.airflow.asset import asset_of, vouched_trace_upper
from tidemark.airflow.documentation import STEP_DOCS
from tidemark.airflow.place import Place
from tidemark.airflow.steps import task_failure, with_step_defaults
from tidemark.errors import TidemarkError
from tidemark.model.instant import format_instant, parse_instant

EVENTS_LOOKED_AT = 20


class PublishOperator(BaseOperator):
    """One event of the collection's asset for what was sealed, drained and vouched for since the last event.

    Skipped where that is nothing: after a re-run of a finished interval, and while the seal waits for a missing one. A
    run that died before its event is made good by the next: events follow each other without gap or overlap.
    """

    ui_color = "#dfe8f5"

    def __init__(self, *, place: Place, task_id: str = "published", **kwargs: Any) -> None:
        asset = asset_of(place.name)
        arguments = with_step_defaults({"doc_md": STEP_DOCS["published"], **kwargs})
        super().__init__(task_id=task_id, inlets=[asset], outlets=[asset], **arguments)
        self.place = place

    def execute(self, context: Any) -> dict[str, str]:
        """The event's extra."""
        asset = asset_of(self.place.name)
        lower = _published_upper(context["inlet_events"][asset])
        try:
            state = self.place.job().log.load().state
        except TidemarkError as error:
            raise task_failure(error) from None
        upper = vouched_trace_upper(state)
        if upper <= lower:
            raise AirflowSkipException(
                f"nothing new: published up to {format_instant(lower)}, the seal is at {format_instant(state.seal)}"
            )
        extra = {"lower": format_instant(lower), "upper": format_instant(upper), "seal": format_instant(state.seal)}
        context["outlet_events"][asset].extra.update(extra)
        return extra


def _published_upper(events: Any) -> int:
    """The upper of the last event of ours; events made by hand, without one, are passed over."""
    newest = events.ascending(False).limit(EVENTS_LOOKED_AT)
    return next((parse_instant(event.extra["upper"]) for event in newest if "upper" in event.extra), 0)

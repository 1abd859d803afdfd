"""Who is notified of what: the functions and notifiers that a collection file names, and what they are given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tidemark.airflow.location import Location
from tidemark.errors import shortened
from tidemark.jobs.queries.overdue import Overdue
from tidemark.model.instant import format_instant, parse_instant
from tidemark.model.wording import counted

if TYPE_CHECKING:
    from airflow.sdk.bases.notifier import BaseNotifier

    from tidemark.airflow.question import Question
    from tidemark.config.airflow import CallSection

MOST_TEXT = 2_000
"""Characters of a notice's text."""
SECRETS = ("conn", "var")
"""What templates of a notifier that a collection file names do not see of the context."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Notice:
    """A notification about a collection.

    `event` is `failure`, `question`, `overdue` or `correction`; `about` the interval or what else it is about, in
    words; `subject` one line for people, `text` some sentences: what happened, and what to do. `dag_id`, `run_id` and
    `task_id` are those of the task that notifies, `url` leads to it ("" where that is not known).
    """

    event: str
    collection: str
    about: str
    subject: str
    text: str
    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    url: str = ""

    def as_dict(self) -> dict[str, str]:
        """JSON values."""
        return asdict(self)


def notify(calls: Sequence[CallSection], notice: Notice, context: Any) -> bool:
    """Call them all; whether any call ended well. One that raises is logged, and stops neither the others nor the task:
    Airflow's own notifiers log their errors themselves."""
    done = False
    for call in calls:
        try:
            _target(call)(notice, context)
            done = True
        except Exception as error:
            log.exception("%s could not be called about %s: %s", call.call, notice.subject, error)
    return done


def call_notifiers(notifiers: Sequence[BaseNotifier], notice: Notice, context: Any) -> None:
    """Call notifiers of a DAG file, which see the whole context, with the notice in it as `tidemark`."""
    for notifier in notifiers:
        try:
            notifier({**context, "tidemark": notice.as_dict()})
        except Exception as error:
            log.exception("a notifier failed about %s: %s", notice.subject, error)


def _target(call: CallSection) -> Callable[[Notice, Any], object]:
    from tidemark.airflow.calls import imported, is_notifier

    found, arguments = imported(call.call), call.arguments
    if not is_notifier(found):
        return lambda notice, context: found(notice, **arguments)
    notifier = found(**arguments) if isinstance(found, type) else found
    return lambda notice, context: notifier(_shown_context(context, notice))


def _shown_context(context: Mapping[str, Any], notice: Notice) -> dict[str, Any]:
    shown = {name: value for name, value in context.items() if name not in SECRETS}
    return {**shown, "tidemark": notice.as_dict()}


class FailureCallback:
    """What Airflow calls when a task of a collection has failed for good."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def __call__(self, context: Any) -> None:
        """Notify of it; never raises."""
        try:
            notify(self._location.airflow.notify.failure, notice_of_failure(self._location, context), context)
        except Exception as error:
            log.exception("nobody could be notified of a failure of %s: %s", self._location.name, error)

    def __deepcopy__(self, memo: object) -> FailureCallback:
        return self


def notice_of_failure(location: Location, context: Any) -> Notice:
    """A task failed: why, and that it is cleared once that is mended."""
    from tidemark.airflow.steps import span_of_run

    try:
        about = str(span_of_run(context, location)) if location.derived is None else "what was computed"
    except Exception:  # what failed may be that it has no interval
        about = f"run {_run_id(context)}"
    task = _ids(context)["task_id"]
    said = str(context.get("exception") or "the task's log says why").strip()
    return Notice(
        "failure",
        location.name,
        about,
        f"{location.name}: {task} failed for {about}",
        shortened(
            f"The task {task} failed, and is not tried again: {said}\n"
            "What was done before it stays done. When the cause is mended, clear the task: it is safe to run again.",
            MOST_TEXT,
        ),
        **_ids(context),
    )


def notice_of_question(question: Question, context: Any) -> Notice:
    """A gate asks what to do."""
    return Notice(
        "question",
        question.collection,
        question.about,
        question.subject,
        shortened(
            f"{question.headline}\nAnswer on the task's tab Required Actions: {', '.join(question.options)}. Its run "
            "waits for that without a worker; later days go on, and are sealed with it.",
            MOST_TEXT,
        ),
        **_ids(context),
    )


def notice_of_overdue(late: Overdue, now: int, context: Any) -> Notice:
    """An interval is overdue at `now` (µs)."""
    about = str(late.interval)
    return Notice(
        "overdue",
        late.collection,
        about,
        f"{late.collection}: {about} is overdue",
        f"{late.words(now)}. Look at its run in the DAG {late.collection}: it waits for files, asks a question or is "
        "red. If it has none, backfill it.",
        **_ids(context),
    )


def notice_of_correction(location: Location, extra: Mapping[str, Any], context: Any) -> Notice:
    """What had been published was changed; `extra` is that of the asset's event."""
    corrected = extra["corrected"]
    times = corrected["event_times"]
    about = f"{times[0]} to {times[1]}" if times else "what was computed"
    after, upto = max(parse_instant(extra["lower"]) - 1, 0), parse_instant(extra["upper"]) - 1
    return Notice(
        "correction",
        location.name,
        about,
        f"{location.name}: {counted(corrected['retracted'], 'row')} retracted and {corrected['added']:,} added in what "
        "was published",
        f"{corrected['changed']}. Who read this before has read something else. The rows: `tidemark changes "
        f"{location.name} --after {format_instant(after)} --upto {format_instant(upto)}`.",
        **_ids(context),
    )


def _ids(context: Any) -> dict[str, str]:
    ti = context.get("ti")
    named = {name: str(getattr(ti, name, "") or "") for name in ("dag_id", "run_id", "task_id")}
    try:
        url = str(ti.log_url or "")
    except Exception:  # an address is a convenience
        url = ""
    return {**named, "url": url}


def _run_id(context: Any) -> str:
    return _ids(context)["run_id"] or "of an unknown id"

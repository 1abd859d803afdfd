"""Waiting for a collection without a worker: until all is complete below a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark.airflow import settings
from tidemark.airflow.location import state_of
from tidemark.airflow.steps import task_failure, with_step_defaults
from tidemark.airflow.window import window_of
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import NAME
from tidemark.model.instant import format_duration, format_instant, parse_instant

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 60.0
"""Seconds between two looks: each pause is twice the one before, up to a minute. A look reads the newest version."""
TIMEOUT = timedelta(days=7)


def is_sealed(state: Arrangement, upto: int) -> bool:
    """Whether all is complete below a time, or nothing more is to come: of an interval that its grace holds back, once
    it is sealed."""
    if state.collection.is_derived:
        return state.complete_below >= upto
    landed = state.collection.landed
    ended = landed.end is not None and state.complete_below >= landed.end
    return ended or state.complete_below + landed.grace >= upto


class SealTrigger(BaseTrigger):
    """Fires when a collection is sealed `upto` a time (µs), or at `until` (seconds since the epoch).

    Its event says `sealed`, `complete_below` and, if it could not be looked at last, `error`. A collection that is not
    there yet, or a store that is away for a while, is waited for.
    """

    def __init__(self, collection: str, root: str, upto: int, until: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.collection, self.root, self.upto, self.until = collection, root, upto, until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, also after a restart: the time limit is not begun again."""
        arguments = {name: getattr(self, name) for name in ("collection", "root", "upto", "until")}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, pause, and look again."""
        pause = FIRST_PAUSE
        while True:
            # Looking is reading a file system or a bucket: never in the loop, which other triggers share.
            seen = await asyncio.to_thread(self._look)
            if seen["sealed"] or time.time() >= self.until:
                yield TriggerEvent(seen)  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(max(0.0, min(pause, self.until - time.time())))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _look(self) -> dict[str, Any]:
        try:
            state = state_of(self.root, self.collection)
        except Exception as error:
            return {"sealed": False, "complete_below": 0, "error": str(error).partition("\n")[0]}
        if state is None:
            return {"sealed": False, "complete_below": 0, "error": "there is no such collection yet"}
        return {"sealed": is_sealed(state, self.upto), "complete_below": state.complete_below}


class WaitForSealOperator(BaseOperator):
    """Waits, deferred, until a collection is sealed `upto` a time: see `wait_for_seal`."""

    template_fields: Sequence[str] = ("collection", "upto")
    ui_color = "#f5efdf"

    def __init__(
        self, *, collection: str, upto: str = "", timeout: timedelta = TIMEOUT, root: str | None = None, **kwargs: Any
    ) -> None:
        if not NAME.fullmatch(collection) and "{{" not in collection:
            raise InvalidUsage(f"collection {collection!r} is no name of one; it must match {NAME.pattern}")
        if upto and "{{" not in upto:
            parse_instant(upto)
        # A wait that failed has waited: what it waits for is no matter of a retry.
        super().__init__(**with_step_defaults({"execution_timeout": None, **kwargs}))
        self.collection, self.upto, self.timeout, self.root = collection, upto, timeout, root

    def execute(self, context: Any) -> dict[str, Any]:
        """Look, and defer where it is not sealed yet."""
        try:
            upto = parse_instant(self.upto) if self.upto else window_of(context).upper
            root = self.root or settings.root()
            state = state_of(root, self.collection)
        except TidemarkError as error:
            raise task_failure(error) from None
        if state is not None and is_sealed(state, upto):
            return _result(self.collection, upto, state.complete_below)
        phrase = "does not exist" if state is None else f"is complete below {format_instant(state.complete_below)}"
        self.log.info("%s %s; waiting without a worker for %s", self.collection, phrase, format_instant(upto))
        trigger = SealTrigger(self.collection, root, upto, time.time() + self.timeout.total_seconds())
        self.defer(trigger=trigger, method_name="sealed", kwargs={"upto": upto})
        raise AssertionError("unreachable: defer raises")

    def sealed(self, context: Any, event: Mapping[str, Any], upto: int) -> dict[str, Any]:
        """Go on after a wait. AirflowFailException if it was in vain."""
        if event["sealed"]:
            return _result(self.collection, upto, event["complete_below"])
        waited = format_duration(self.timeout // timedelta(microseconds=1))
        why = event.get("error") or f"it is complete below {format_instant(event['complete_below'])}"
        raise AirflowFailException(
            f"{self.collection} was not sealed up to {format_instant(upto)} within {waited}: {why}; clear this task to "
            "wait on, and see the collection's DAG for what blocks it"
        )


def _result(collection: str, upto: int, complete_below: int) -> dict[str, Any]:
    times = {"upto": upto, "complete_below": complete_below}
    return {"collection": collection, **{name: format_instant(time) for name, time in times.items()}}


def wait_for_seal(
    collection: str,
    *,
    upto: str = "",
    timeout: timedelta = TIMEOUT,
    root: str | None = None,
    task_id: str | None = None,
    **task_options: Any,
) -> WaitForSealOperator:
    """A task that waits, without a worker, until a collection holds all on-time rows below `upto`: ISO 8601 text or a
    template of it, as `"{{ data_interval_end }}"`; without it the end of what the run is about (`window_of`).

    An interval that the collection's grace holds back counts as sealed when it is; beyond a collection's end there is
    nothing to wait for. A collection that does not exist yet is waited for. Fails, without a retry, after `timeout`.
    Returns `upto` and `complete_below`. `root` replaces the deployment's, `task_id` is `wait_for_<collection>`
    without one, `task_options` are those of Airflow's operators.
    """
    return WaitForSealOperator(
        task_id=task_id or f"wait_for_{collection}",
        collection=collection,
        upto=upto,
        timeout=timeout,
        root=root,
        **task_options,
    )

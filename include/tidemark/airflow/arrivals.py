"""Runs that load starts: the triggerer looks at what has landed of the interval that goes on, and by the collection's
rules (`batches`) starts a run that ingests it. The interval is sealed by its own run, which waits for none of these."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from tidemark.airflow.documentation import batches_doc, gate_doc, step_doc
from tidemark.airflow.gate import GateOperator
from tidemark.airflow.landing import landing_of_run, landing_param
from tidemark.airflow.links import BATCHES
from tidemark.airflow.location import Location, location_of
from tidemark.airflow.steps import IngestOperator, StepOperator
from tidemark.airflow.task_arguments import task_arguments
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.arrivals import Arrivals, open_interval, pause_of
from tidemark.jobs.steps.declared import step_of
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.collection import Collection, Gate
from tidemark.model.instant import from_datetime, parse_instant
from tidemark.model.interval import Interval
from tidemark.model.local_time import format_local

SCHEME = "tidemark-landing://"
SLOW = 20
"""Looks take at most one part in so many of the time: a landing that is slow to list is listed less often."""


class ArrivalsTrigger(BaseEventTrigger):
    """Fires whenever what has landed of the interval that goes on is to be ingested; never ends.

    `collection` is the declaration as JSON, `root` and `landing` say where it is and where files land. An event says
    the interval's `lower` and `upper` and the `cut`. What cannot be looked at now is looked at again. Begun again, it
    finds what it needs in the landing and the state.
    """

    def __init__(self, collection: str, root: str, landing: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.collection, self.root, self.landing = collection, root, landing

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again: another declaration is another trigger."""
        arguments = {name: getattr(self, name) for name in ("collection", "root", "landing")}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, report what is due, pause."""
        arrivals, pause = await asyncio.to_thread(self._arrivals)
        while True:
            began = time.monotonic()
            # Looking is reading a file system or a bucket: never in the loop, which other triggers share.
            due = await asyncio.to_thread(self._look, arrivals)
            if due is not None:
                yield TriggerEvent(due)  # type: ignore[no-untyped-call]
            await asyncio.sleep(max(pause, SLOW * (time.monotonic() - began)))

    def _arrivals(self) -> tuple[Arrivals, float]:
        from tidemark.jobs.app import open_job
        from tidemark.storage.documents.codec import decode

        declared: Collection = decode(self.collection.encode(), Collection, name="the collection of a trigger")
        batching = declared.landed.batching
        assert batching is not None  # `batches_dag` makes no other
        job = open_job(self.root, declared.name, _no_runner)
        return Arrivals(declared, job.log, self.landing), pause_of(batching) / 1_000_000

    def _look(self, arrivals: Arrivals) -> dict[str, Any] | None:
        try:
            due = arrivals.look(time.time_ns() // 1000)
        except Exception as error:
            # A folder that is not there yet, a store that is away: no run can help, and a trigger that raises is gone.
            self.log.warning("%s: cannot look at what has landed: %s", arrivals.collection.name, error)
            return None
        if due is not None:
            self.log.info("%s: %s is cut by %s", arrivals.collection.name, due.interval, due.cut.words)
        return None if due is None else due.as_dict()


def _no_runner() -> Any:
    raise AssertionError("who looks at arrivals reads no data")


def arrivals_of(location: Location) -> Asset:
    """The asset whose events say that a batch is due. InvalidUsage for a collection that declares no `batches`."""
    from tidemark.storage.documents.codec import encode

    collection = location.collection
    if collection.landed.batching is None:
        raise InvalidUsage(f"collection {collection.name} declares no batches: its intervals are read at their ends")
    landing = landing_of_run(None, location.landing)
    trigger = ArrivalsTrigger(encode(collection).decode(), location.store_root, landing)
    watcher = AssetWatcher(name="arrivals", trigger=trigger)
    return Asset(name=f"{location.name}.landing", uri=f"{SCHEME}{location.name}", group="tidemark", watchers=[watcher])


class _OfACut(StepOperator):
    """A task of a run that ingests what has landed so far of an interval that goes on."""

    def span_of(self, context: Any) -> Interval:
        return cut_of_run(context, self.location.collection)[0]


class CutOperator(_OfACut, IngestOperator):
    """Ingests what has landed so far of the interval that goes on, and says why; the interval is not over by that.

    A run that arrivals started has their interval, and their reason; a run by hand is an explicit cut of the interval
    that went on when it was triggered. Nothing is waited for: where nothing has landed there is nothing to do.
    """

    def execute(self, context: Any) -> Any:
        """Run the app."""
        return StepOperator.execute(self, context)

    def over(self, context: Any) -> list[str]:
        """Nothing: the interval goes on, and the app leaves it open."""
        return []

    def args_of_run(self, context: Any) -> list[str]:
        _, cut = cut_of_run(context, self.location.collection)
        return [*super().args_of_run(context), "--cut", json.dumps(cut.as_dict())]


class CutGateOperator(_OfACut, GateOperator):
    """The gate behind it. It asks nobody: the interval goes on, and the gate of its own run judges this batch, too."""


def cut_of_run(context: Mapping[str, Any], collection: Collection) -> tuple[Interval, Cut]:
    """The interval that a run takes a batch of, and why it is cut. InvalidUsage for a run by hand before the
    collection's start or after its end."""
    payloads = [
        event.extra["payload"]
        for asset, events in (context.get("triggering_asset_events") or {}).items()
        if str(getattr(asset, "uri", "")).startswith(SCHEME)
        for event in events
        if isinstance(event.extra.get("payload"), Mapping)
    ]
    if payloads:
        # Of several, which queued behind a run that took long, the newest belongs to the interval that goes on.
        newest = max(payloads, key=lambda payload: parse_instant(payload["upper"]))
        cuts = [_cut(payload) for payload in payloads if payload["upper"] == newest["upper"]]
        reasons = {reason for cut in cuts for reason in (cut.reason, *cut.also)}
        last = max(cuts, key=lambda cut: cut.at or 0)
        cut = Cut.of(reasons, rate=last.rate, direction=last.direction, opened=cuts[0].opened, at=last.at)
        assert cut is not None  # each has a reason
        about = Interval(parse_instant(newest["lower"]), parse_instant(newest["upper"]))
        return about.in_zone(collection.zone), cut
    now = from_datetime(context["dag_run"].run_after)
    interval = open_interval(collection, now)
    if interval is None:
        raise InvalidUsage(
            f"no interval of {collection.name} goes on at {format_local(now, collection.zone)}: see its start and end"
        )
    return interval, Cut(Reason.EXPLICIT, at=now)


def _cut(payload: Mapping[str, Any]) -> Cut:
    return Cut.parse(json.dumps(payload["cut"]))


def batches_dag(
    collection: str | Path | Collection | Location,
    *,
    root: str | None = None,
    landing: str | None = None,
    default_args: dict[str, Any] | None = None,
    **dag_options: Any,
) -> DAG:
    """The DAG `<collection>.batches`: a run for each batch that the collection's `batches` cut of what has landed.

    `ingest >> gate_unsealed`

    One run at a time; what lands meanwhile is the next one's. The collection's own DAG seals, and neither waits for the
    other: where there are fewer slots than tasks, its tasks go first. A run by hand cuts at once. Options as
    `tidemark_dag`. InvalidUsage for a collection without `batches`.
    """
    location = location_of(collection, root=root, landing=landing)
    if location.derived is not None:
        raise InvalidUsage(f"{location.name} is derived: it runs when its inputs have more, and nothing of it lands")
    options: dict[str, Any] = {
        "dag_id": f"{location.name}{BATCHES}",
        "description": f"Ingests what has landed of {location.name} before its interval is over",
        "doc_md": batches_doc(location.collection),
        "max_active_runs": 1,
        "catchup": False,
        "tags": sorted({"batches", "tidemark", *location.airflow.tags}),
        "params": {"landing": landing_param()},
        **dag_options,
    }
    own = {"owner": "tidemark", "priority_weight": 0, "weight_rule": "absolute"}
    arguments = {**own, **task_arguments(location), **(default_args or {})}
    with DAG(schedule=[arrivals_of(location)], default_args=arguments, **options) as dag:
        ingest = CutOperator(task_id="ingest", location=location, doc_md=step_doc(step_of("ingest")))
        gate = CutGateOperator(
            task_id="gate_unsealed", location=location, gate=Gate.UNSEALED, doc_md=gate_doc(Gate.UNSEALED), asks=False
        )
        ingest >> gate
    return dag

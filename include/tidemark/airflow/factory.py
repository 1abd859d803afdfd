"""From a collection to its DAG, and from a folder of collection files to all of theirs."""

from __future__ import annotations

import logging
from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, get_parsing_context, timezone

from tidemark.airflow import settings
from tidemark.airflow.collection_files import collection_named, fitting_collections
from tidemark.airflow.documentation import collection_doc, derived_doc
from tidemark.airflow.landing import landing_param
from tidemark.airflow.links import BATCHES
from tidemark.airflow.location import Location, location_of
from tidemark.airflow.owners import refuse_second_maker
from tidemark.airflow.task_arguments import task_arguments
from tidemark.airflow.task_group import all_parts, collection_tasks
from tidemark.airflow.timetable import CollectionTimetable, InputsTimetable
from tidemark.airflow.wide_runs import WideRuns
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.declared import COLUMNS
from tidemark.model.collection import Collection
from tidemark.model.derived import Derived
from tidemark.model.instant import EPOCH

OWNER = "tidemark"
MAX_ACTIVE_RUNS = 4
"""Runs of a collection that go on side by side; those that wait for files or for an answer are among them."""
if TYPE_CHECKING:
    from airflow.sdk.bases.notifier import BaseNotifier

log = logging.getLogger(__name__)


def tidemark_dag(
    collection: str | Path | Collection | Location,
    *,
    root: str | None = None,
    landing: str | None = None,
    ready_within: timedelta | None = None,
    backfill_intervals: int | None = None,
    asks: bool | None = None,
    response_timeout: timedelta | None = None,
    notifiers: Sequence[BaseNotifier] | BaseNotifier = (),
    default_args: dict[str, Any] | None = None,
    tags: tuple[str, ...] = (),
    **dag_options: Any,
) -> DAG:
    """The DAG of one collection, from its file or its declaration: a run for each interval of its schedule.

    `ingest >> gate_unsealed >> seal >> gate_frontier >> drain >> gate_trace >> compact >> gate_compaction >> published`

    Behind it are `publish_tables`, where the file declares tables, and the functions that it names in `after`. A
    derived collection has `correct` in place of `ingest`, and a run begins whenever the asset of one of its inputs has
    an event; a run of a backfill corrects it until the end of its days, and no further.

    Unpaused, it starts no run outside the collection's start and end, and of the past at most the last interval:
    the others are a backfill, whose runs are about `backfill_intervals` each at most (TIDEMARK_BACKFILL_INTERVALS, 31).
    A `schedule` in words among the options is kept within start and end, too. `root` and `landing` replace the
    deployment's, `ready_within` for TIDEMARK_READY_WITHIN, `asks` and `response_timeout` for TIDEMARK_GATE_ASKS and
    TIDEMARK_RESPONSE_TIMEOUT; `notifiers` are called whenever a gate asks (GateOperator). `default_args` and
    `dag_options` (arguments of `airflow.sdk.DAG`, `dag_id` among them) go before what the file says under `airflow`,
    and that before ours. Raises InvalidUsage for a wrong collection, and in a DAG file where `collection_dags` makes a
    DAG of this id too.
    """
    location = location_of(collection, root=root, landing=landing)
    refuse_second_maker(dag_options.get("dag_id", location.name))
    asking = {"asks": asks, "response_timeout": response_timeout, "notifiers": notifiers}
    tasks = {"ready_within": ready_within, **asking}
    return _dag(
        location,
        tasks=tasks,
        backfill_intervals=backfill_intervals,
        default_args=default_args,
        tags=tags,
        **dag_options,
    )


def _dag(
    location: Location,
    *,
    tasks: Mapping[str, Any] | None = None,
    backfill_intervals: int | None = None,
    default_args: dict[str, Any] | None = None,
    tags: tuple[str, ...] = (),
    **dag_options: Any,
) -> DAG:
    dag_id, said = dag_options.pop("dag_id", location.name), location.airflow
    most = said.backfill_intervals if backfill_intervals is None else backfill_intervals
    wide = _wide_runs(dag_id, most, {**(default_args or {}), **dag_options})
    options: dict[str, Any] = {
        # The timetable holds runs within start and end. Beyond dates of the DAG a manual run would have no tasks.
        "start_date": EPOCH,
        "catchup": False,
        # Order is kept by the store, also across backfills, manual runs and clears. A day whose gate asks is a running
        # one: the others go on beside it, up to this many.
        "max_active_runs": MAX_ACTIVE_RUNS,
        # A run that is cleared uses today's collection file: an older one would take its declaration back.
        "rerun_with_latest_version": True,
        **(_derived(location, wide) if location.derived else _landed(location.collection, wide)),
        **({} if said.max_active_runs is None else {"max_active_runs": said.max_active_runs}),
        **dag_options,
    }
    kind = "derived" if location.derived else str(location.collection.landed.source.envelope)
    options["tags"] = sorted({OWNER, kind, *said.tags, *tags})
    schedule = options.pop("schedule")  # None is a schedule too: a DAG that is only ever triggered
    if isinstance(schedule, str) and schedule not in ("@once", "@continuous"):
        if location.derived:
            raise InvalidUsage(f"{location.name} is derived: it runs when its inputs have more, not by {schedule!r}")
        schedule = CollectionTimetable.of(location.collection, schedule, wide)
    arguments = {"owner": OWNER, **task_arguments(location), **(default_args or {})}
    with DAG(dag_id, schedule=schedule, default_args=arguments, **options) as dag:
        collection_tasks(location, all_parts(location), tasks or {})
    return dag


def _wide_runs(dag_id: str, most: int | None, options: Mapping[str, Any]) -> WideRuns:
    """How wide the runs are that a backfill of the DAG makes."""
    end = timezone.convert_to_utc(options.get("end_date")) if options.get("catchup") else None
    return WideRuns(dag_id, settings.backfill_intervals() if most is None else most, end)


def _landed(declared: Collection, wide: WideRuns) -> dict[str, Any]:
    """What the DAG of a collection that lands has of its own."""
    return {
        "schedule": CollectionTimetable.of(declared, wide=wide),
        "description": f"{declared.landed.source.envelope} of {', '.join(column.name for column in declared.key)}",
        "doc_md": collection_doc(declared),
        "params": _params(),
    }


def _derived(location: Location, wide: WideRuns) -> dict[str, Any]:
    """What the DAG of a derived collection has of its own."""
    origin = location.origin
    assert isinstance(origin, Derived)
    return {
        "schedule": InputsTimetable.of(origin.inputs, wide),
        "description": f"computed from {', '.join(origin.inputs)}",
        "doc_md": derived_doc(location.name, origin, location.declared),
        "params": _params_of_derived(),
        # Each run goes as far as its inputs are: a second one beside it would compute the same.
        "max_active_runs": 1,
    }


def collection_dags(folder: str | Path | None = None, *, exclude: Names[str] = ()) -> dict[str, DAG]:
    """The DAG of every right collection file of a folder (TIDEMARK_COLLECTIONS), by id: for a DAG file's `globals()`;
    and `<collection>.batches` of each that declares `batches`.

    Without those named in `exclude` and those whose file says `dag: own`: a DAG file of your own makes them, by
    `tidemark_dag`. A wrong file takes nobody else's DAG down: it is left out here and reported by
    `check_collection_files`; so is one with a definition that `tidemark explain` refuses.
    A process that is to run one task makes that task's DAG alone, and leaves definitions to the task.
    """
    made = {}
    for location in _asked_for(folder):
        if location.name in exclude or location.own_dag:
            continue
        try:
            made[location.name] = _dag(location)
            if location.derived is None and location.collection.landed.batching is not None:
                from tidemark.airflow.arrivals import batches_dag  # the triggerer's base classes take a while

                batches = batches_dag(location)
                made[batches.dag_id] = batches
        except Exception:
            log.exception("No DAG of %s could be made", location.file)
    return made


def _asked_for(folder: str | Path | None) -> list[Location]:
    """The collections whose DAGs this process needs: those of a DAG that Airflow names, as a task's process has one;
    else all, by definitions that fit."""
    only = get_parsing_context().dag_id
    if only is None:
        return fitting_collections(folder)
    found = collection_named(only.removesuffix(BATCHES), folder)
    return [] if found is None else [found]


def _params() -> dict[str, Param]:
    def bound(title: str, text: str) -> Param:
        return Param(None, type=["null", "string"], format="date-time", title=title, description_md=text)

    return {
        "lower": bound(
            "lower",
            "Start of the intervals of a **single run**, with **upper**: a boundary of the schedule. Each run of a "
            "backfill has its own and refuses others.",
        ),
        "upper": bound(
            "upper", "End of the interval, exclusive. Several intervals of the schedule are read one by one."
        ),
        "landing": landing_param(),
        COLUMNS.name: Param(
            None,
            type=["null", "string"],
            title=COLUMNS.name,
            description_md="Columns that were declared after files were read, with commas between them: the files of "
            "the run's intervals are read again for these, changed or not. In a **backfill**, have all runs "
            "reprocessed.",
        ),
    }


def _params_of_derived() -> dict[str, Param]:
    return {
        "until": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="until",
            description_md="Correct it up to this time and no further; empty: as far as its inputs are. Each run of a "
            "backfill has its own and refuses another.",
        ),
        "whole": Param(False, type="boolean", title="whole", description_md="Recompute everything, whatever changed."),
        "check": Param(
            False,
            type="boolean",
            title="check",
            description_md="Compute all of it, and put right what anything but `correct` wrote or lost.",
        ),
    }

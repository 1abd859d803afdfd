"""From a collection to its DAG, and from a folder of collection files to all of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, chain

from tidemark.airflow import settings
from tidemark.airflow.documentation import collection_doc
from tidemark.airflow.place import Place, place_of
from tidemark.airflow.publish import PublishOperator
from tidemark.airflow.schedule import Schedule, run_dates
from tidemark.airflow.steps import GATE_AFTER, step_and_gate
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection

OWNER = "tidemark"
SUFFIXES = (".yaml", ".yml")


def tidemark_dag(
    collection: str | Path | Collection | Place,
    *,
    root: str | None = None,
    landing: str | None = None,
    default_args: dict[str, Any] | None = None,
    tags: tuple[str, ...] = (),
    **dag_options: Any,
) -> DAG:
    """The DAG of one collection, from its file or its declaration: a run for each interval of its schedule.

    `ingest >> gate_unsealed >> seal >> gate_frontier >> drain >> gate_trace >> compact >> gate_compaction >> published`

    Unpaused, it starts no run outside the collection's start and end, and of the past at most the last interval:
    the others are a backfill. `root` and `landing` stand in for the deployment's; `default_args` and `dag_options`
    (arguments of `airflow.sdk.DAG`) go before ours. Raises InvalidUsage for a wrong collection.
    """
    place = collection if isinstance(collection, Place) else place_of(collection, root=root, landing=landing)
    declared = place.collection
    start_date, end_date = run_dates(declared)
    options: dict[str, Any] = {
        "description": f"{declared.source.envelope} of {', '.join(column.name for column in declared.key)}",
        "start_date": start_date,
        "end_date": end_date,
        "catchup": False,
        # For a readable grid only: order is kept by the store, also across backfills, manual runs and clears.
        "max_active_runs": 1,
        "doc_md": collection_doc(declared),
        "params": _params(),
        **dag_options,
    }
    options["tags"] = sorted({OWNER, str(declared.source.envelope), *tags})
    # None is a schedule too: a DAG that is only ever triggered.
    schedule = options.pop("schedule") if "schedule" in options else Schedule(declared.schedule).timetable()
    with DAG(place.name, schedule=schedule, default_args={"owner": OWNER, **(default_args or {})}, **options) as dag:
        tasks = [task for step in GATE_AFTER for task in step_and_gate(place, step)]
        chain(*tasks, PublishOperator(place=place))
    return dag


def collection_dags(folder: str | Path | None = None) -> dict[str, DAG]:
    """The DAG of every right collection file of a folder (TIDEMARK_COLLECTIONS), by id: for a DAG file's `globals()`.

    A wrong file takes nobody else's DAG down: it is left out here and reported by `check_collection_files`.
    """
    return {place.name: tidemark_dag(place) for place in right_collections(folder)}


def right_collections(folder: str | Path | None = None) -> list[Place]:
    """The collections of a folder's right files (TIDEMARK_COLLECTIONS), in the files' order."""
    places, _ = _read(folder)
    return places


def check_collection_files(folder: str | Path | None = None) -> None:
    """Raise InvalidUsage with one line for each wrong collection file of a folder: file, line and the nearest field.

    For a DAG file of its own. An exception in a DAG file becomes its import error in the UI, and Airflow then stops
    scheduling *every* DAG of that file: the file that complains must not be the one that holds the DAGs.
    """
    _, errors = _read(folder)
    if errors:
        raise InvalidUsage("\n".join(errors))


def _read(folder: str | Path | None) -> tuple[list[Place], list[str]]:
    """The collections of a folder's files, and one line for each file that is wrong, both in the files' order."""
    folder = Path(folder or settings.collections_folder())
    places: dict[str, Place] = {}
    errors = []
    for file in sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES) if folder.is_dir() else ():
        try:
            place = place_of(file)
            run_dates(place.collection)
            if other := places.get(place.name):
                raise InvalidUsage(f"collection {place.name} is declared by {other.file} already; rename one")
        except InvalidUsage as error:
            line = str(error)
            errors.append(line if line.startswith(str(file)) else f"{file}: {line}")
        else:
            places[place.name] = place
    return list(places.values()), errors


def _params() -> dict[str, Param]:
    def bound(title: str, text: str) -> Param:
        return Param(None, type=["null", "string"], format="date-time", title=title, description_md=text)

    return {
        "lower": bound("lower", "Start of the interval, for a run that has none of its own. With **upper**."),
        "upper": bound("upper", "End of the interval, exclusive."),
        "landing": Param(
            None,
            type=["null", "string"],
            title="landing",
            description_md="Where this run's files are, in place of TIDEMARK_LANDING.",
        ),
    }

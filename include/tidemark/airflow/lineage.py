"""What a task read and wrote, as OpenLineage reports it where its provider is installed; without it nothing here
runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidemark.model.collection import Collection

if TYPE_CHECKING:
    from tidemark.airflow.location import Location

SAID = ("step", "gate", "outcome", "version", "lower", "upper", "seal", "complete_below", "changed", "suite")
"""What of a task's result is said of its run."""


@dataclass(frozen=True)
class Check:
    """A check of a gate, and whether it passed."""

    rule: str
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class Dataset:
    """A collection or a landing: where it is, its columns and their types, the rows written, the checks made."""

    namespace: str
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Lineage:
    """What a task read and wrote, and what is said of its run."""

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)


def lineage_of_step(
    location: Location, step: str, result: Mapping[str, Any], landing: str | None = None, failed: Mapping[str, Any] = {}
) -> Lineage:
    """The lineage of a step that ended with a result; of a gate that failed with the details of its error, `failed`."""
    own = collection_dataset(location)
    run = {name: result[name] for name in SAID if result.get(name) is not None} | {"step": step}
    if step == "gate":
        return Lineage((replace(own, checks=tuple(_checks(result, failed))),), (), run)
    rows = result.get("rows")
    output = replace(own, rows=rows if isinstance(rows, int) else None)
    if location.derived is not None and step == "correct":
        inputs = tuple(named_dataset(location.store_root, name) for name in location.derived.inputs)
    elif location.derived is None and landing is not None:
        inputs = (landing_dataset(location.collection.landed.source.path, landing),)
    else:
        inputs = ()
    return Lineage(inputs, (output,), run)


def lineage_of_event(location: Location, extra: Mapping[str, Any]) -> Lineage:
    """The lineage of `published`: the collection, as far as its event says."""
    run = {name: extra[name] for name in SAID if extra.get(name) is not None} | {"step": "published"}
    return Lineage((), (collection_dataset(location),), run)


def collection_dataset(location: Location) -> Dataset:
    """A collection, with its columns where they are known without a look at the store."""
    own = named_dataset(location.store_root, location.name)
    if not isinstance(location.declared, Collection):
        return own
    columns = {column.name: str(column.type) for column in location.declared.columns}
    return Dataset(own.namespace, own.name, columns)


def named_dataset(root: str, name: str) -> Dataset:
    """A collection below a root, by OpenLineage's names of files and buckets."""
    return _dataset(f"{root.rstrip('/')}/{name}")


def landing_dataset(path: str, landing: str) -> Dataset:
    """Where a collection's files land: its source path up to what differs between intervals and files."""
    filled = path.replace("{{ landing }}", landing)
    fixed = filled.split("{{")[0].split("{%")[0].split("*")[0].split("?")[0]
    return _dataset(fixed.rpartition("/")[0] or fixed)


def _dataset(place: str) -> Dataset:
    parts = urlsplit(place)
    if parts.scheme in ("", "file"):
        return Dataset("file", str(Path(parts.path).absolute()))
    return Dataset(f"{parts.scheme}://{parts.netloc}", parts.path.strip("/"))


def _checks(result: Mapping[str, Any], failed: Mapping[str, Any]) -> list[Check]:
    """What a gate's result says of its checks: those that failed or warn by name, the others as one."""
    wrong = [Check(str(one["rule"]), False, str(one["message"])) for one in failed.get("failed", ())]
    warned = [Check(str(one["rule"]), True, str(one["message"])) for one in result.get("warnings", ())]
    if result.get("rules"):
        warned.append(Check(f"{result['rules']} checks of the gate {result.get('gate', '')}".strip(), True))
    return [*wrong, *warned]


def operator_lineage(lineage: Lineage) -> Any:
    """As Airflow's OpenLineage provider takes it. ImportError where that is not installed."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=[_openlineage(one, is_input=True) for one in lineage.inputs],
        outputs=[_openlineage(one, is_input=False) for one in lineage.outputs],
        run_facets={"tidemark": _run_facet(lineage.run)} if lineage.run else {},
    )


def _openlineage(dataset: Dataset, *, is_input: bool) -> Any:
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import (
        data_quality_assertions_dataset,
        output_statistics_output_dataset,
        schema_dataset,
    )

    facets: dict[str, Any] = {}
    if dataset.columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name, of) for name, of in dataset.columns.items()]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    if is_input:
        checked: dict[str, Any] = {}
        if dataset.checks:
            assertion = data_quality_assertions_dataset.Assertion
            made = [assertion(assertion=one.rule, success=one.passed) for one in dataset.checks]
            checked["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(made)
        return InputDataset(dataset.namespace, dataset.name, facets=facets, inputFacets=checked)
    written: dict[str, Any] = {}
    if dataset.rows is not None:
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
        written["outputStatistics"] = statistics(rowCount=dataset.rows)
    return OutputDataset(dataset.namespace, dataset.name, facets=facets, outputFacets=written)


def _run_facet(said: Mapping[str, Any]) -> Any:
    import attrs
    from openlineage.client.facet_v2 import RunFacet

    made = attrs.make_class("TidemarkRunFacet", {name: attrs.field() for name in said}, bases=(RunFacet,), kw_only=True)
    return made(**said)

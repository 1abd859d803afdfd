"""The section of a collection file that says in which tables others find what the collection holds: `publish`.

The string below a field is its text in docs/reference/collection-file.md, as those of config/declaration.py are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from tidemark.config.section import STRICT
from tidemark.config.values import checked
from tidemark.errors import InvalidUsage
from tidemark.model.publication import Destination, TableFormat

MOST_PROPERTIES = 50


def _properties(value: Any) -> Any:
    """`catalog: prod` is a catalog that pyiceberg's own configuration describes."""
    if isinstance(value, str) and value:
        return {"name": value}
    if not isinstance(value, dict) or not value or len(value) > MOST_PROPERTIES:
        raise InvalidUsage("write the name of a catalog, or its properties: {type: rest, uri: http://catalog:8181}")
    for name, given in value.items():
        if not isinstance(name, str) or isinstance(given, bool) or not isinstance(given, str | int):
            raise InvalidUsage(f"the catalog's property {name} is {given!r}; write text")
    return {name: str(given) for name, given in value.items()}


class IcebergSection(BaseModel):
    """A table of Apache Iceberg, kept by pyiceberg."""

    model_config = STRICT

    table: str
    """The table's name in the catalog, with its namespace: `db.flights`. Tidemark makes both."""
    catalog: Annotated[dict[str, str], checked(_properties)] = {}
    """The catalog: a name that pyiceberg's own configuration knows, or properties, `{type: rest, uri: ...}`, without
    secrets. Left out, SQLite in the folder `_published` below the root, which must be a local path then."""
    by: Literal["reference", "copy"] = "reference"
    """`reference` names the collection's own files in the table where they are its rows as they are, and copies the
    others; `copy` copies all rows, so that the table needs nothing of the collection."""
    copy_above: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Which share of the rows may be appended at once; where more are new, the table is written whole."""
    keep_snapshots: Annotated[int, Field(ge=2, le=1000)] = 10
    """How many snapshots can be read, the newest included. What older ones named is let go."""


class DeltaSection(BaseModel):
    """A table of Delta Lake, kept by deltalake. All rows are copied."""

    model_config = STRICT

    path: str = ""
    """Where the table is: a path, or a URI as `s3://lake/tables/flights`. Left out, `_published/delta/NAME` below the
    root."""
    copy_above: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Which share of the rows may be appended or merged at once; where more are new, the table is written whole."""


class PublishSection(BaseModel):
    """In which tables others find the collection, one of a format."""

    model_config = STRICT

    iceberg: IcebergSection | None = None
    """A table of Apache Iceberg; needs the extra `iceberg`."""
    delta: DeltaSection | None = None
    """A table of Delta Lake; needs the extra `delta`."""

    @model_validator(mode="after")
    def _can_be(self) -> PublishSection:
        assert self.destinations is not None
        return self

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where the collection is published. InvalidUsage for a table that cannot be one."""
        made = []
        if (ice := self.iceberg) is not None:
            properties = tuple(sorted(ice.catalog.items()))
            by_reference = ice.by == "reference"
            made.append(
                Destination(
                    TableFormat.ICEBERG, ice.table, properties, by_reference, ice.copy_above, ice.keep_snapshots
                )
            )
        if (delta := self.delta) is not None:
            made.append(Destination(TableFormat.DELTA, delta.path, by_reference=False, copy_above=delta.copy_above))
        return tuple(made)


SECTIONS: dict[str, type[BaseModel]] = {
    "publish": PublishSection,
    "iceberg": IcebergSection,
    "delta": DeltaSection,
}
"""By the field that holds them."""

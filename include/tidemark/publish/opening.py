"""The table of a destination. What it takes is imported when there is one."""

from __future__ import annotations

from tidemark.errors import require
from tidemark.model.publication import Destination, TableFormat
from tidemark.publish.table import PublishedTable


def table_of(destination: Destination, root: str, collection: str) -> PublishedTable:
    """The table that a collection below `root` is published to. MissingExtra without the package for its format."""
    if destination.format is TableFormat.ICEBERG:
        require("pyiceberg", "iceberg")
        from tidemark.publish.iceberg import IcebergTable

        return IcebergTable(destination, root)
    require("deltalake", "delta")
    from tidemark.publish.delta import DeltaLakeTable

    return DeltaLakeTable(destination, root, collection)

"""A collection as files of others' formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.command import Call, CollectionArgument, register
from tidemark.cli.read import PANEL, CommittedOption, HappenedOption, KnownOption, WhereOption

ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Replace a file that is there, or a folder with nothing but an export in it.")
]


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "export", panel=PANEL)(export)


def export(
    call: Call,
    collection: CollectionArgument,
    to: Annotated[Path, typer.Option("--to", metavar="PATH", help="A file (.parquet, .csv, .jsonl), or a folder.")],
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="parquet, csv or jsonl. Default: what the ending says."),
    ] = None,
    partition_by: Annotated[
        str | None,
        typer.Option("--partition-by", metavar="COLUMN", help="A folder with a file for each value of this column."),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", metavar="COLUMN", help="Only this column; repeatable. Default: all.")
    ] = None,
    time: KnownOption = None,
    event_time: HappenedOption = None,
    committed: CommittedOption = None,
    where: WhereOption = None,
    replace: ReplaceOption = False,
) -> None:
    """Write the rows of a collection to Parquet, CSV or JSON lines. The result appears whole or not at all.

    Prints the collection file that reads it back.

    Example: tidemark export flights --to flights.csv --where carrier=UA
    """
    opened = call.opened(collection)
    written = opened.export(
        to,
        time=time,
        event_time=event_time,
        committed=committed,
        columns=columns,
        where=where,
        format=format,
        partition_by=partition_by,
        replace=replace,
    )
    document = {
        "collection": collection,
        "version": opened.version,
        "path": str(written.path),
        "rows": written.rows,
        "files": written.files,
        "declaration": written.declaration or None,
        "no_declaration": written.no_declaration or None,
    }
    files = f"{written.files:,} file{'' if written.files == 1 else 's'}"
    said = f"{written.rows:,} rows of {collection} at version {opened.version} in {files}: {written.path}"
    read_back = (
        f"\n{written.declaration}" if written.declaration else f"no file reads it back: {written.no_declaration}"
    )
    call.emit(document, said, read_back.removesuffix("\n"))

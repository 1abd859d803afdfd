"""SQL over all collections of a root, by a statement or at a prompt."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.command import Call, UsageError, register
from tidemark.cli.read import PANEL, LimitOption, Shape, check_shape
from tidemark.cli.sql_rows import about, asked, described, shown

MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="BYTES", help="Most memory, such as 2GiB. Default: TIDEMARK_SQL_MEMORY, or 1GiB."),
]


class NoPandas:
    """Reports pandas as not installed. Arrow imports it with its datasets where it can: a fifth of the time of a small
    question, while no frame is made or taken here. Arrow remembers that there is none: only for a process of one's own.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse the package; of any other others know."""
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "sql", panel=PANEL)(sql)


def sql(
    call: Call,
    statement: Annotated[
        str | None,
        typer.Argument(help="One SELECT. Default: what is piped in, or a prompt that takes statements.", metavar="SQL"),
    ] = None,
    limit: LimitOption = None,
    shape: Annotated[Shape, typer.Option("--format", help="How rows are printed.")] = Shape.TABLE,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write all rows into this file instead: .parquet, .csv or .jsonl."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a file of --out that is there.")] = False,
    memory: MemoryOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the reads open and why not more, instead of the rows.")
    ] = False,
) -> None:
    """Query in SQL: each collection of the root is a table, as it is now, as it was, or as it changed.

    Example: tidemark sql "SELECT carrier, count(*) FROM flights FOR TIMESTAMP AS OF '2013-01-03' GROUP BY carrier"
    """
    if call.settings.own_process:
        sys.meta_path.insert(0, NoPandas())
    check_shape(call, shape)
    if replace and out is None:
        raise UsageError("--replace is for the file of --out; give both")
    if statement is None and sys.stdin.isatty():
        if out is not None or call.settings.as_json or explain:
            raise UsageError("a prompt writes no file and no JSON, and explains nothing; give a statement")
        from tidemark.cli.prompt import Prompt

        Prompt(call, memory, limit, shape).run()
        return
    answer = asked(call, sys.stdin.read() if statement is None else statement, memory)
    if explain:
        reads = answer.explain()
        return call.emit({"reads": [asdict(read) for read in reads]}, *map(str, reads))
    if out is None:
        return shown(call, answer, limit, shape)
    if limit is not None or shape is not Shape.TABLE:
        raise UsageError("--out has all rows in the format of its ending; leave --limit and --format out")
    written = answer.export(out, replace=replace)
    document = {"file": str(out), "rows": written.rows, **about(answer)}
    call.emit(document, f"{written.rows:,} rows in {out}; {described(answer)}")

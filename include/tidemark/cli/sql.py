"""SQL over all collections of a root, by a statement or at a prompt."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.command import Call, UsageError, register
from tidemark.cli.read import PANEL, CommittedOption, LimitOption, Shape, check_shape
from tidemark.cli.sql_rows import about, asked, described, shown
from tidemark.errors import require

MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="BYTES", help="Most memory, such as 2GiB. Default: TIDEMARK_SQL_MEMORY, or 1GiB."),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="Most time to compute, such as 30s. Default: TIDEMARK_SQL_TIMEOUT, or 1h."
    ),
]
READING = 2**28
READING_CORE = 2**26
# Bytes that a process takes beside DuckDB's memory to read collections, in all and for each core. Of two cores 384 MiB:
# 250 were seen (3 million rows, sorted and grouped in 100 MiB).


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


def confine(memory: str | None) -> None:
    """Limit the memory of this process, on Linux, to what it has now and a statement may take.

    DuckDB does not count single large values. One that cannot be allocated is an error of the statement then.
    """
    require("duckdb", "sql")

    import tidemark.api.sql.answer  # noqa: F401
    from tidemark.api.sql.asking import memory_limit

    room = memory_limit(memory) + READING + READING_CORE * (os.cpu_count() or 1)
    if sys.platform == "linux":
        import resource

        (taken,) = re.findall(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text())
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = int(taken) * 1024 + room
        resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def sql(
    call: Call,
    statement: Annotated[
        str | None,
        typer.Argument(help="One SELECT. Default: what is piped in, or a prompt that takes statements.", metavar="SQL"),
    ] = None,
    committed: CommittedOption = None,
    limit: LimitOption = None,
    shape: Annotated[Shape, typer.Option("--format", help="How rows are printed.")] = Shape.TABLE,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write all rows into this file instead: .parquet, .csv or .jsonl."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a file of --out that is there.")] = False,
    memory: MemoryOption = None,
    timeout: TimeoutOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the reads open and why not more, instead of the rows.")
    ] = False,
) -> None:
    """Query in SQL: each collection of the root is a table, as it is now, as it was, or as it changed.

    Example: tidemark sql "SELECT carrier, count(*) FROM flights FOR TIMESTAMP AS OF '2013-01-03' GROUP BY carrier"
    """
    if call.settings.own_process:
        sys.meta_path.insert(0, NoPandas())
        confine(memory)
    check_shape(call, shape)
    if replace and out is None:
        raise UsageError("--replace is for the file of --out; give both")
    if statement is None and sys.stdin.isatty():
        if out is not None or call.settings.as_json or explain:
            raise UsageError("a prompt writes no file and no JSON, and explains nothing; give a statement")
        from tidemark.cli.prompt import Prompt

        Prompt(call, memory, timeout, limit, shape, committed).run()
        return
    answer = asked(call, sys.stdin.read() if statement is None else statement, memory, timeout, committed)
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

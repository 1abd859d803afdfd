"""`tidemark`: every job the DAG runs, and every question one has about a collection, from a shell.

Exit codes: 0 done, 1 refused or failed (one line on stderr says why and what to do), 2 usage.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tidemark import __version__
from tidemark.cli import advance, collect, collections, derived, holds, late, output, read, steps, windows
from tidemark.cli.command import USAGE, JsonOption, LandingOption, RootOption, Settings


class Tidemark(TyperGroup):
    """The command group: a wrong command line is one line, too, and under --json a document."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        given = extra.pop("args", args[0] if args else None)
        words = list(sys.argv[1:] if given is None else given) or ["--help"]
        try:
            code = super().main(args=words, standalone_mode=False, **extra)
        except typer.Abort:
            code = _refused("aborted", 1, "Abort", words)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            code = _refused(_usage(error), int(getattr(error, "exit_code", USAGE)), "UsageError", words)
        if standalone_mode:
            sys.exit(code or 0)
        return code


def _usage(error: Any) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "tidemark")
    return f"{output.one_line(error.format_message()).rstrip('.')}; see `{path} --help`"


def _refused(message: str, code: int, kind: str, words: list[str]) -> int:
    if "--json" in words:
        output.print_json({"error": {"kind": kind, "message": message}}, sys.stdout)
    print(f"error: {message}", file=sys.stderr, flush=True)
    return code


def _version(asked: bool) -> None:
    if asked:
        print(f"tidemark {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="tidemark",
    cls=Tidemark,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def tidemark(
    ctx: typer.Context,
    root: RootOption = None,
    landing: LandingOption = None,
    as_json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tidemark keeps a changing dataset exact. Everything the DAG does, by hand; and answers, without a JVM.

    --root, --landing and --json may stand before or after the command.
    """
    settings = ctx.ensure_object(Settings)
    settings.root, settings.landing, settings.as_json = root or settings.root, landing or settings.landing, as_json


collections.add_to(app)
derived.add_to(app)
late.add_to(app)
read.add_to(app)
windows.add_to(app)
steps.add_to(app)
advance.add_to(app)
collect.add_to(app)
holds.add_to(app)

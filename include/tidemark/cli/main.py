"""`tidemark`: every job the DAG runs, and every question one has about a collection, from a shell.

Exit codes: 0 done, 1 refused or failed (one line on stderr says why and what to do), 2 usage, 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tidemark import __version__
from tidemark.cli import output
from tidemark.cli.command import USAGE, JsonOption, LandingOption, RootOption, Settings
from tidemark.imports import in_own_process

COMMANDS = {
    "collections": ("init", "status", "log", "verify"),
    "doctor": ("doctor",),
    "derived": ("explain",),
    "read": ("as-of", "range", "changes"),
    "latest": ("latest-at",),
    "windows": ("windows",),
    "sql": ("sql",),
    "export": ("export",),
    "show": ("show",),
    "steps": ("ingest", "correct", "gate", "seal", "drain", "compact", "publish", "unpublish", "quarantine"),
    "advance": ("advance",),
    "backfill": ("backfill",),
    "collect": ("collect",),
    "holds": ("hold", "release"),
    "drop": ("drop",),
    "late": ("late",),
}
"""The commands of each module, in the order of the help. A module is imported once one of its commands is needed: to
import all of them takes as long as most commands do."""


class Tidemark(TyperGroup):
    """The command group: a wrong command line is one line, too, and under --json a document."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the help."""
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, from its module; for a name that is none all are loaded, to find one like it."""
        if cmd_name not in self.commands:
            named = [module for module, names in COMMANDS.items() if cmd_name in names]
            for module in named or COMMANDS:
                self._load(module)
        return self.commands.get(cmd_name)

    def _load(self, module: str) -> None:
        part = typer.Typer()
        import_module(f"tidemark.cli.{module}").add_to(part)
        self.commands.update(typer.main.get_group(part).commands)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        given = extra.pop("args", args[0] if args else None)
        words = list(sys.argv[1:] if given is None else given) or ["--help"]
        _open_streams()
        if own_process := given is None:
            in_own_process()
        extra.setdefault("obj", Settings(own_process=own_process))
        try:
            code = super().main(args=words, standalone_mode=False, **extra)
        except typer.Abort:
            code = _refused("aborted", 1, "Abort", words)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            code = _refused(_usage(error, words), int(getattr(error, "exit_code", USAGE)), "UsageError", words)
        if standalone_mode:
            _drop_unwritten()
            sys.exit(code or 0)
        return code


def _open_streams() -> None:
    """Python has no stream where the shell closed one: nobody listens then, which is no error."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 for as long as we run


def _drop_unwritten() -> None:
    """Drop output that cannot be written, which a line has said: at its end Python would try again, and exit with
    120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: Any, words: Sequence[str]) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "tidemark")
    message = output.one_line(error.format_message()).rstrip(".")
    for pattern, plain in _PLAIN:
        message = re.sub(pattern, plain.replace("VALUE", repr(_given(error, words)).replace("\\", r"\\")), message)
    return f"{message}; see `{path} --help`"


_PLAIN = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer.*", "VALUE is not a whole number"),
    (r"Input should be greater than or equal to (\d+)", r"VALUE is below \1"),
)
"""What the library below says of a value, which it leaves out, and how we do."""


def _given(error: Any, words: Sequence[str]) -> str:
    """What was given for the option that an error is about."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for word, following in zip(words, [*words[1:], ""], strict=True):
        for name in names:
            if word == name:
                return following
            if word.startswith(f"{name}="):
                return word.removeprefix(f"{name}=")
    return ""


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
    """Tidemark keeps a changing dataset exact. Run by hand what the DAG does, and read collections without a JVM.

    --root, --landing and --json may be given before the command, or after one that takes them.
    """
    settings = ctx.ensure_object(Settings)
    settings.as_json = as_json
    settings.root = settings.root if root is None else root
    settings.landing = settings.landing if landing is None else landing

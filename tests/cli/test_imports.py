"""Questions about metadata answer at once: nothing heavy is imported for them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

import tidemark
from tests.cli.conftest import Shell
from tidemark.cli.main import COMMANDS

HEAVY = ("airflow", "boto3", "great_expectations", "numpy", "pandas", "pyarrow", "pyspark")
OF_FILES = ("croniter", "jinja2", "sqlglot", "yaml", "tidemark.definition.recipe")
"""What collection files and definitions need: a fifth of a second of a processor."""


def test_every_command_is_listed_with_its_module() -> None:
    for module, names in COMMANDS.items():
        part = typer.Typer()
        import_module(f"tidemark.cli.{module}").add_to(part)
        assert tuple(typer.main.get_group(part).commands) == names


UNUSED = ("airflow", "boto3", "great_expectations", "pandas", "polars", "pyspark", *OF_FILES)
"""What no answer needs. Great Expectations needs pandas, and Arrow imports it, too, wherever it is installed."""


@pytest.mark.parametrize("command", ["--help", "status", "log", "verify", "seal", "late"])
def test_nothing_heavy_is_imported(events: Shell, command: str) -> None:
    heavy = HEAVY + (OF_FILES if command in ("status", "log") else ())
    words = [command] if command == "--help" else [command, "events"]
    assert imported(events, words, heavy).endswith(" []")


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["sql", "SELECT * FROM events WHERE id = 'a'"], UNUSED),
        (["as-of", "events", "--where", "id=a"], (*UNUSED, "duckdb")),
        (["changes", "events"], (*UNUSED, "duckdb")),
        (["advance", "events", "--to", "2024-01-03"], (*UNUSED[: -len(OF_FILES)], "duckdb")),
    ],
)
def test_an_answer_imports_what_it_needs(events: Shell, words: list[str], unused: tuple[str, ...]) -> None:
    events.events(1, "a,7,06:00")
    events.events(2, "b,7,06:00")
    events.moved("events", "2024-01-01")
    assert imported(events, words, unused) == "0 []"


def imported(events: Shell, words: list[str], names: tuple[str, ...]) -> str:
    """The exit code of a command, and those of some modules that it has imported at its end."""
    script = (
        "import sys\nfrom tidemark.cli import app\ntry:\n    app()\nexcept SystemExit as end:\n    code = end.code\n"
        f"print(code or 0, [name for name in {names!r} if name in sys.modules], file=sys.stderr)"
    )
    places = {"TIDEMARK_ROOT": str(events.root), "TIDEMARK_LANDING": str(events.landing)}
    path = {"PYTHONPATH": str(Path(tidemark.__file__).parent.parent), **places}
    command_line = [sys.executable, "-c", script, *words]
    answer = subprocess.run(command_line, capture_output=True, text=True, env=os.environ | path)
    return answer.stderr.splitlines()[-1]

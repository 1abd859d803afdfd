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


@pytest.mark.parametrize("command", ["--help", "status", "log", "verify", "seal", "late"])
def test_nothing_heavy_is_imported(events: Shell, command: str) -> None:
    heavy = HEAVY + (OF_FILES if command in ("status", "log") else ())
    script = (
        "import sys\nfrom tidemark.cli import app\ntry:\n    app()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    words = [command] if command == "--help" else [command, "events", "--root", str(events.root)]
    path = {"PYTHONPATH": str(Path(tidemark.__file__).parent.parent)}
    command_line = [sys.executable, "-c", script, *words]
    answer = subprocess.run(command_line, capture_output=True, text=True, env=os.environ | path)
    assert answer.stderr.splitlines()[-1] == "[]", answer.stderr

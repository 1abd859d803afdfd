"""Questions about metadata answer at once: nothing heavy is imported for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tidemark
from tests.cli.conftest import Shell

HEAVY = ("airflow", "boto3", "great_expectations", "numpy", "pandas", "pyarrow", "pyspark")


@pytest.mark.parametrize("command", ["--help", "status", "log", "verify", "seal", "late"])
def test_nothing_heavy_is_imported(events: Shell, command: str) -> None:
    script = (
        "import sys\nfrom tidemark.cli import app\ntry:\n    app()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    words = [command] if command == "--help" else [command, "events", "--root", str(events.root)]
    path = {"PYTHONPATH": str(Path(tidemark.__file__).parent.parent)}
    command_line = [sys.executable, "-c", script, *words]
    answer = subprocess.run(command_line, capture_output=True, text=True, env=os.environ | path)
    assert answer.stderr.splitlines()[-1] == "[]", answer.stderr

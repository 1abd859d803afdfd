"""What the how-to for a new step shows is a step."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from tidemark.jobs.steps.step import Step

HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "add-a-step.md"


def test_its_example_is_declared_and_taken_by_its_job() -> None:
    shown: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL):
        exec(compile(block, str(HOW_TO), "exec", dont_inherit=True), shown)
    step: Step = shown["TALLY"]
    taken = set(inspect.signature(shown["tally"]).parameters) - {"job", "interval"}
    assert taken == step.values({"least": "1", "aloud": False}).keys()


def test_every_field_of_a_declaration_is_explained() -> None:
    fields = {
        name
        for row in re.findall(r"^\| (`.*?) \|", HOW_TO.read_text(), re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert fields == set(inspect.signature(Step).parameters) - {"name"}


def test_every_file_it_names_is_there() -> None:
    project = HOW_TO.parents[2]
    package = project / "include" / "tidemark"
    named = set(re.findall(r"`((?:[\w]+/)+\w+\.(?:py|md))`", HOW_TO.read_text())) - {"spark_apps/tally.py"}
    assert len(named) >= 8
    assert [name for name in named if not (project / name).is_file() and not (package / name).is_file()] == []

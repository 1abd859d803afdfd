"""docs/reference says what the code says: pages are written from it, and the settings are those that are read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import tidemark
from tidemark.config import declaration
from tidemark.jobs.steps.declared import STEPS
from tools import reference

ROOT = Path(__file__).resolve().parents[2]
INTERNAL = {
    "TIDEMARK_AIRFLOW_INSTANCE",  # the supervisor's mark on its components
    "TIDEMARK_SCRATCH",  # a part of the resident server's mark on its processes
    "TIDEMARK_TEST_DEPTH",  # of tests (tests/support/budget.py)
}


@pytest.mark.parametrize("name", ["collection-file.md", "cli.md", "errors.md", "python.md", "airflow.md"])
def test_a_page_is_what_the_code_says(name: str) -> None:
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert reference.pages()[name] == written, "run `make reference`"


def test_everything_that_is_offered_in_python_has_its_text() -> None:
    page = reference.pages()["python.md"] + reference.pages()["errors.md"]
    for name in set(tidemark.__all__) - {"__version__"}:
        offered = getattr(tidemark, name)
        assert offered.__doc__
        assert re.search(rf"^## (`tidemark\.)?{name}\b|`{name}`", page, re.M), name
    assert {found.__name__ for found in reference._OFFERED} >= {
        found.__name__ for found in (tidemark.OpenCollection, tidemark.Answer, tidemark.Hold)
    }


def test_everything_for_dag_files_has_its_text() -> None:
    from tidemark import airflow

    page = reference.pages()["airflow.md"]
    for name in airflow.__all__:
        assert getattr(airflow, name).__doc__
        assert f"### `{name}(" in page, name
    for step in STEPS:
        assert f"| `{step}` |" in page


def test_every_field_of_a_collection_file_has_its_text() -> None:
    page = reference.pages()["collection-file.md"]
    for section in reference._SECTIONS.values():
        for field in declaration.fields_of(section):
            assert f"| `{field}` |" in page


def test_the_settings_are_those_that_are_read() -> None:
    listed = re.findall(
        r"^\| `(TIDEMARK_\w+)`", (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8"), re.M
    )
    places = ["include", "tools", "plugins", "dags", "spark_apps", "docker-compose.yaml"]
    found = subprocess.run(
        ["git", "grep", "-ohE", r"\bTIDEMARK_[A-Z_]+[A-Z]\b", "--", *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(listed) == sorted({*found.stdout.split()} - INTERNAL)

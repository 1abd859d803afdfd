"""What the tree promises, where no linter looks."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PURE = ("errors.py", "model", "plan")


def tracked(pattern: str) -> list[Path]:
    """The files under version control, and those about to be, that match `pattern`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", pattern],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [path for name in listed.split("\0") if name and (path := PROJECT / name).is_file()]


def imported(source: Path) -> Iterator[str]:
    """The full names of the modules that `source` imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}:{node.lineno}: relative import"
            yield node.module or ""


def test_pure_code_imports_the_standard_library_and_itself() -> None:
    own = ("tidemark.errors", "tidemark.model", "tidemark.plan")
    sources = [
        path
        for path in tracked("include/tidemark/*.py")
        if path.relative_to(PROJECT / "include" / "tidemark").parts[0] in PURE
    ]
    assert len(sources) >= 3
    foreign = {
        f"{source.relative_to(PROJECT)}: {name}"
        for source in sources
        for name in imported(source)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(own)
    }
    assert foreign == set()


def test_the_name_is_tidemark_never_include_tidemark() -> None:
    # `include` is a source root. Under both names every class would exist twice.
    wrong = [path for path in tracked("*.py") if any(name.split(".")[0] == "include" for name in imported(path))]
    assert wrong == []
    assert not (PROJECT / "include" / "__init__.py").exists()


def test_spark_apps_never_import_each_other() -> None:
    # The driver would find the neighbour, an executor would not.
    apps = tracked("spark_apps/*.py")
    names = {path.stem for path in apps}
    assert [path for path in apps if names & set(imported(path))] == []


def test_plugins_hold_at_most_the_one_plugin() -> None:
    # Airflow executes every .py there and puts it into sys.modules under its bare stem.
    assert {path.name for path in tracked("plugins/*.py")} <= {"tidemark_plugin.py"}


@pytest.mark.parametrize("made", [".venv", ".airflow", ".tidemark", "build", ".env"])
def test_what_is_made_here_is_not_committed(made: str) -> None:
    assert tracked(made) == []

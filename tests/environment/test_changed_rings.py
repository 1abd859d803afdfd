"""`make test-changed` leaves no ring out that a change can touch."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.environment.test_layout import tracked
from tools import changed_rings, run_tests
from tools.changed_rings import ALWAYS, TOUCHED, chosen, touched

pytestmark = pytest.mark.pure

PROJECT = Path(__file__).resolve().parents[2]
RINGS = run_tests.rings()


def rings_of(path: str) -> set[str]:
    return set(chosen([path], RINGS))


@cache
def imported(source: Path) -> tuple[str, ...]:
    """The full names of what a file imports, those of modules and those of what may be one."""
    return tuple(_imported(source))


def _imported(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{name.name}" for name in node.names)


@cache
def file_of(module: str) -> str | None:
    """Where a module of ours is; None for others'."""
    place = module.replace(".", "/")
    for root in ("include/", "", "tests/"):
        for path in (f"{root}{place}.py", f"{root}{place}/__init__.py"):
            if (PROJECT / path).is_file():
                return path
    return None


def test_the_example_holds() -> None:
    assert doctest.testmod(changed_rings).failed == 0


def test_a_change_of_what_a_test_imports_runs_its_ring() -> None:
    """Of every file of every ring, and every file of ours that it imports."""
    missing, looked_at = set(), 0
    for source in (path for path in tracked("tests/*.py") if path.relative_to(PROJECT).parts[1] in RINGS):
        ring = source.relative_to(PROJECT).parts[1]
        for path in filter(None, map(file_of, imported(source))):
            looked_at += 1
            if ring not in rings_of(path):
                missing.add(f"{ring} imports {path}")
    assert looked_at > 3_000
    assert missing == set()


def test_a_change_of_what_tests_share_runs_everything_that_shares_it() -> None:
    """What tests/support imports is used by rings that do not import it themselves."""
    shared = {path for source in tracked("tests/support/*.py") for path in map(file_of, imported(source)) if path}
    assert len(shared) > 20
    used = {path for path in shared if path.startswith(("include/", "benchmarks/"))}
    by_ring = {
        ring: {
            name
            for source in (PROJECT / "tests" / ring).rglob("*.py")
            for name in imported(source)
            if name.startswith(("support.", "tests.support."))
        }
        for ring in RINGS
    }
    for path in used:
        sharing = {
            module
            for source in tracked("tests/support/*.py")
            if path in set(map(file_of, imported(source)))
            for module in (f"support.{source.stem}", f"tests.support.{source.stem}")
        }
        expected = {ring for ring, names in by_ring.items() if sharing & names}
        assert expected <= rings_of(path), path


@pytest.mark.parametrize(
    "path",
    [
        *("include/tidemark/model/batch.py", "include/tidemark/new/thing.py", "tests/support/world.py", "anything.txt"),
        *("tests/conftest.py", "pyproject.toml", "requirements.txt", "tests/pure/arrow/samples.py", "include/x.py", ""),
        *("tests/newring/test_x.py", "documents/x", "toolsx/a.py", "README.md.bak"),
    ],
)
def test_what_no_rule_names_runs_everything(path: str) -> None:
    assert touched(path) is None
    assert rings_of(path) == set(RINGS)


@pytest.mark.parametrize(
    ("path", "rings"),
    [
        ("include/tidemark/airflow/factory.py", {"dags", "e2e", "deep", "launch", "s3"}),
        ("include/tidemark/airflow/web/app.py", {"dags", "e2e", "deep", "launch", "s3", "simulation", "quality"}),
        ("docs/how-to/run-days.md", {"pure", "cli", "dags"}),
        ("tests/pure/model/test_batch.py", {"pure"}),
        ("tests/dags/test_web.py", {"dags", "s3"}),
        ("tools/run_tests.py", set()),
        ("tools/build_zip.py", {"spark", "dags", "e2e", "deep", "launch", "s3"}),
    ],
)
def test_some_changes_run_some_rings(path: str, rings: set[str]) -> None:
    assert rings_of(path) == rings | set(ALWAYS)


def test_rules_name_rings_and_files_that_exist() -> None:
    assert {ring for rings in TOUCHED.values() for ring in rings} | set(ALWAYS) <= set(RINGS)
    assert [prefix for prefix in TOUCHED if not (PROJECT / prefix).exists()] == []


def test_each_ring_says_which_files_touch_it() -> None:
    found = chosen(["docs/b.md", "docs/a.md", "tests/cli/test_x.py", "docs/a.md"], RINGS)
    assert found["cli"] == ["docs/a.md", "docs/b.md", "tests/cli/test_x.py"]
    assert list(found) == [ring for ring in RINGS if ring in found]
    assert chosen([], RINGS) == {}

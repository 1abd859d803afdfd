"""tools/deep_parts.py: every deep test is in a part, and a part is stale once a file that it depends on differs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment.test_layout import tracked
from tools import deep_parts, run_tests
from tools.deep_parts import MEASURED, PartState, Passed, fitting, names, rings_of, selected
from tools.run_tests import measuring

PROJECT = Path(__file__).resolve().parents[2]
LISTED = [(part, kind, test) for part, kinds in run_tests.PARTS.items() for kind in kinds for test in kinds[kind]]


def defined(path: Path) -> set[str]:
    """The tests of a file, `name` or `Class` and `Class::name`."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return names


@pytest.mark.parametrize(("part", "kind", "test"), LISTED, ids=[test for *_, test in LISTED])
def test_what_a_part_lists_exists(part: str, kind: str, test: str) -> None:
    assert kind in ("tests", "searches")
    path, _, name = test.partition("::")
    assert (PROJECT / path).is_file()
    assert not name or name.partition("[")[0] in defined(PROJECT / path)


def test_no_test_is_listed_twice() -> None:
    tests = [test for *_, test in LISTED]
    assert len(tests) == len(set(tests))


def test_what_has_a_deeper_search_is_in_a_part_and_nothing_else_is_among_searches() -> None:
    """Files that ask how deep to search; what measures is a part anyway."""
    files = {str(path.relative_to(PROJECT)): path.read_text() for path in tracked("tests/*/test_*.py")}
    asking = {path for path, text in files.items() if re.search(r"^from (tests\.)?support\.budget import", text, re.M)}
    asking -= {path for ring in run_tests.rings() for path in measuring(ring)}
    listed = {test.partition("::")[0] for *_, test in LISTED}
    assert asking - listed == set()
    assert {test for _, kind, test in LISTED if kind == "searches"} - asking == set()
    assert {path for path in files if path.startswith("tests/deep/")} - listed == set()


def test_what_measures_is_a_part_of_each_ring() -> None:
    assert "measured-launch" in names()
    assert "tests/launch/test_resident.py" in selected("measured-launch")
    assert rings_of("measured-launch") == {"launch"}


def test_records_are_of_parts() -> None:
    assert {path.name for path in deep_parts.PASSED.glob("*")} <= set(names())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with two parts, of two rings."""
    for path, text in (("include/tidemark/cli/x.py", ""), ("include/tidemark/model/x.py", "")):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    for ring in ("cli", "simulation"):
        (tmp_path / "tests" / ring).mkdir(parents=True)
        (tmp_path / "tests" / ring / "test_a.py").write_text("def test_a():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = measured\n")
    (tmp_path / ".gitignore").write_text("build\n__pycache__\n.pytest_cache\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    parts = {ring: {"tests": [f"tests/{ring}/test_a.py"]} for ring in ("cli", "simulation")}
    for module in (deep_parts, run_tests):
        monkeypatch.setattr(module, "PROJECT", tmp_path)
        monkeypatch.setattr(module, "PARTS", parts)
    monkeypatch.setattr(deep_parts, "PASSED", tmp_path / "tests" / "deep" / "passed")
    monkeypatch.setattr(deep_parts, "REPORTS", tmp_path / "build")
    deep_parts.versioned.cache_clear()
    yield tmp_path
    deep_parts.versioned.cache_clear()


def stale() -> list[str]:
    deep_parts.versioned.cache_clear()
    return sorted(part.part for part in deep_parts.states() if part.stale)


def test_a_part_that_passed_is_stale_once_a_file_of_its_rings_differs(project: Path) -> None:
    assert stale() == ["cli", "simulation"]
    assert deep_parts.run_all(deep_parts.states(), None) == 0
    assert stale() == []
    assert set(json.loads((deep_parts.PASSED / "cli").read_text())) == {"date", "minutes", "files"}
    (project / "include/tidemark/cli/x.py").write_text("# differs\n")
    assert stale() == ["cli", "simulation"], "simulation calls the command line, too"
    assert deep_parts.run_all(deep_parts.states(), None) == 0
    (project / "tests/cli/test_a.py").write_text("def test_a():\n    assert False\n")
    assert stale() == ["cli"]
    assert deep_parts.run_all([part for part in deep_parts.states() if part.stale], None) == 1
    assert stale() == ["cli"]


def test_a_part_whose_files_change_while_it_runs_is_not_recorded(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests/cli/test_a.py").write_text(
        "from pathlib import Path\n\ndef test_a():\n    Path('include/tidemark/cli/x.py').write_text('# meanwhile')\n"
    )
    cli = next(part for part in deep_parts.states() if part.part == "cli")
    assert deep_parts.run(cli)
    assert "files it depends on changed meanwhile: not recorded" in capsys.readouterr().out
    assert "cli" in stale()


def test_a_part_that_fails_at_the_base_as_well_fails_nobody(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = [part for part in deep_parts.states() if part.part == "cli"]
    monkeypatch.setattr(deep_parts, "run", lambda part: False)
    monkeypatch.setattr(deep_parts, "fails_at", lambda base, part: True)
    assert deep_parts.run_all(failed, "abc") == 0
    assert capsys.readouterr().out == "cli failed, at abc as well\n"
    monkeypatch.setattr(deep_parts, "fails_at", lambda base, part: False)
    assert deep_parts.run_all(failed, "abc") == 1
    assert deep_parts.run_all(failed, None) == 1


def test_the_stale_ones_that_fit_are_the_shortest() -> None:
    def part(name: str, minutes: float, *, stale: bool = True) -> PartState:
        return PartState(name, Passed("2026-11-01 10:00", minutes, "before" if stale else "now"), "now")

    parts = [part("c", 9.0), part("a", 5.0), part("b", 1.0, stale=False), PartState("new", None, "now"), part("d", 6.5)]
    assert [part.part for part in fitting(parts, 20.0)] == ["a", "d"]
    assert [part.part for part in fitting(parts, 45.0)] == ["a", "d", "c"], "nobody knows how long the new one takes"


def test_names_of_measured_parts_are_no_others() -> None:
    assert not any(part.startswith(MEASURED) for part in run_tests.PARTS)

"""tools/run_tests.py: which tests run where, what is said of them at the end, and from when a change counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import all_cpu, run_tests
from tools.run_tests import BUDGETS, TOTAL_BUDGET, Lane, Ran, changed_since, measuring, rings, side_by_side, summary
from tools.slowest_tests import slowest

PASSES = "def test_a():\n    pass\n"
FAILS = "import pytest\n\n@pytest.mark.measured\ndef test_a():\n    assert False\n\ndef test_b():\n    pass\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of three rings: in one something measures, in one a test that fails belongs to a deep part."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = measured\naddopts = --import-mode=importlib\n")
    for ring, text in (("e2e", PASSES), ("new", FAILS), ("spark", PASSES + "def test_b():\n    assert False\n")):
        (tmp_path / "tests" / ring).mkdir(parents=True)
        (tmp_path / "tests" / ring / f"test_{ring}.py").write_text(text)
    (tmp_path / "build" / "test-reports").mkdir(parents=True)
    monkeypatch.setattr(run_tests, "PROJECT", tmp_path)
    monkeypatch.setattr(
        run_tests, "LOGS", (tmp_path / "build" / "test-lane-2.log", tmp_path / "build" / "test-lane-3.log")
    )
    monkeypatch.setattr(run_tests, "REPORTS", tmp_path / "build" / "test-reports")
    monkeypatch.setattr(run_tests, "PARTS", {"a part": {"tests": ["tests/spark/test_spark.py::test_b"]}})
    return tmp_path


def test_every_ring_is_run_once_without_deep_parts_and_what_measures(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rings() == ["e2e", "new", "spark"]
    assert [measuring(ring) for ring in rings()] == [[], ["tests/new/test_new.py"], []]
    lanes = side_by_side(rings())
    ran = [ring for lane in lanes for ring in lane.ran]
    assert sorted(ring.name for ring in ran) == ["e2e", "new", "spark"]
    assert not any(ring.failed for ring in ran)
    assert summary(lanes, 0.0) == 0
    tests = capfd.readouterr().out.partition("the slowest 20 tests, in seconds:\n")[2]
    assert [f"  tests.{test}\n" in tests for test in ("e2e.test_e2e::test_a", "new.test_new::test_b")] == [True, True]
    assert ("test_new::test_a" in tests, "test_spark::test_b" in tests) == (False, False)


def test_a_ring_in_which_no_test_is_left_has_not_failed(project: Path) -> None:
    (project / "tests/new/test_new.py").write_text(FAILS.partition("def test_b")[0])
    assert [ring.failed for lane in side_by_side(rings()) for ring in lane.ran] == [False] * 3


def test_the_budgets_add_up() -> None:
    assert sum(BUDGETS.values()) == TOTAL_BUDGET


def test_the_end_names_failures_and_the_dearest_tests_of_a_ring_far_above_its_budget(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = "".join(f'<testcase classname="tests.cli" name="test_{n}" time="{n}"/>' for n in range(9))
    (project / "build/test-reports/cli.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    dear = BUDGETS["cli"] * run_tests.WARN_AT + 0.1
    assert summary([Lane(ran=[Ran("dags", True, 1.5, 1.0), Ran("cli", False, 0.5, dear)])], 0.0) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("some tests failed, in dags,")
    assert any(line.split() == ["dags", "1", "1.5", "1.0", str(BUDGETS["dags"])] for line in lines)
    warning = lines.index(
        f"warning: cli used {dear:.1f} CPU minutes, its budget is {BUDGETS['cli']}; its dearest tests:"
    )
    assert [line.split()[-1] for line in lines[warning + 1 : -1]] == [f"tests.cli::test_{n}" for n in (8, 7, 6, 5, 4)]
    assert summary([Lane(ran=[Ran("cli", False, 0.5, BUDGETS["cli"])])], 0.0) == 0
    assert "warning" not in capsys.readouterr().out


def test_processes_that_nobody_waited_for_count_as_well() -> None:
    """A grandchild that outlives its parent uses half a second of a core."""
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    orphans = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}]); sys.exit(3)"
    process = subprocess.Popen([sys.executable, all_cpu.__file__, sys.executable, "-c", orphans])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 3
    assert used.ru_utime + used.ru_stime > 0.5


def test_the_slowest_are_of_all_reports(tmp_path: Path) -> None:
    for name, times in (("one", (3.0, 0.5)), ("two", (1.0, 7.25))):
        cases = "".join(f'<testcase classname="tests.{name}" name="test_{t}" time="{t}"/>' for t in times)
        (tmp_path / f"{name}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert slowest(sorted(tmp_path.glob("*.xml")), 3) == [
        (7.25, "tests.two::test_7.25"),
        (3.0, "tests.one::test_3.0"),
        (1.0, "tests.two::test_1.0"),
    ]


def test_a_change_counts_from_where_the_branch_parted_also_before_it_is_committed(project: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)

    (project / ".gitignore").write_text("build\n")
    for words in (("init",), ("add", "."), ("commit", "-m", "a"), ("checkout", "-b", "work")):
        git(*words)
    (project / "tests/e2e/test_e2e.py").rename(project / "tests/e2e/test_other.py")
    git("add", ".")
    git("commit", "-m", "b")
    git("checkout", "main")
    (project / "elsewhere").write_text("")
    git("add", ".")
    git("commit", "-m", "c")
    git("checkout", "work")
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "a new file").write_text("")
    assert set(changed_since("main")) == {
        *("tests/e2e/test_e2e.py", "tests/e2e/test_other.py", "pytest.ini", "a new file"),
    }
    with pytest.raises(SystemExit, match=r"git cannot compare with nope .*: say another commit, BASE=…"):
        run_tests.touched("nope")

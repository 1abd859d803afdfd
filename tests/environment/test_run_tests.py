"""tools/run_tests.py: which tests run where, what is said of them at the end, and from when a change counts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import run_tests
from tools.run_tests import Lane, Ran, changed_since, measuring, rings, side_by_side, summary
from tools.slowest_tests import slowest

PASSES = "def test_a():\n    pass\n"
FAILS = "import pytest\n\n@pytest.mark.measured\ndef test_a():\n    assert False\n\ndef test_b():\n    pass\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of three rings, in one of which something measures."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = measured\naddopts = --import-mode=importlib\n")
    for ring, text in (("e2e", PASSES), ("new", FAILS), ("spark", PASSES)):
        (tmp_path / "tests" / ring).mkdir(parents=True)
        (tmp_path / "tests" / ring / f"test_{ring}.py").write_text(text)
    (tmp_path / "build" / "test-reports").mkdir(parents=True)
    monkeypatch.setattr(run_tests, "PROJECT", tmp_path)
    monkeypatch.setattr(
        run_tests, "LOGS", (tmp_path / "build" / "test-lane-2.log", tmp_path / "build" / "test-lane-3.log")
    )
    monkeypatch.setattr(run_tests, "REPORTS", tmp_path / "build" / "test-reports")
    return tmp_path


def test_every_ring_is_run_once_and_what_measures_alone_after_them(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rings() == ["e2e", "new", "spark"]
    assert [measuring(ring) for ring in rings()] == [[], ["tests/new/test_new.py"], []]
    lanes = side_by_side(rings())
    ran = [one for lane in lanes for one in lane.ran]
    assert sorted(one.name for one in ran) == ["e2e", "new", "spark"]
    assert not any(one.failed for one in ran), "what measures is not run beside others"
    last = run_tests.alone(rings())
    assert [(one.name, one.failed) for one in last.ran] == [("new-measured", True)]
    assert summary([*lanes, last], 0.0) == 1
    said = capfd.readouterr().out
    assert "some tests failed, in new-measured," in said
    for test in ("tests.e2e.test_e2e::test_a", "tests.new.test_new::test_a", "tests.new.test_new::test_b"):
        assert f"  {test}\n" in said.partition("the slowest 20 tests, in seconds:\n")[2]


def test_a_ring_of_which_all_measures_has_not_failed(project: Path) -> None:
    (project / "tests/new/test_new.py").write_text(FAILS.partition("def test_b")[0])
    assert [one.failed for lane in side_by_side(rings()) for one in lane.ran] == [False] * 3


def test_a_ring_that_fails_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lane = Lane(ran=[Ran("dags", True, 1.5, 1.0), Ran("cli", False, 0.5, 0.5)])
    assert summary([lane], 0.0) == 1
    said = capsys.readouterr().out
    assert "some tests failed, in dags," in said
    assert "dags 1.5 (1.0), cli 0.5 (0.5)" in said
    assert summary([Lane(ran=[Ran("cli", False, 0.5, 0.5)])], 0.0) == 0


def test_the_slowest_are_of_all_reports(tmp_path: Path) -> None:
    for name, times in (("one", (3.0, 0.5)), ("two", (1.0, 7.25))):
        cases = "".join(f'<testcase classname="tests.{name}" name="test_{t}" time="{t}"/>' for t in times)
        (tmp_path / f"{name}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    found = slowest(sorted(tmp_path.glob("*.xml")), 3)
    assert found == [(7.25, "tests.two::test_7.25"), (3.0, "tests.one::test_3.0"), (1.0, "tests.two::test_1.0")]


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

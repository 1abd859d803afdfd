"""What CI runs, judged without it: the targets are there, actions are pinned, nothing may write to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
WORKFLOWS = {path.stem: path.read_text() for path in sorted((PROJECT / ".github" / "workflows").iterdir())}
MAKE = re.compile(r"\bmake (?:--silent )?([a-z][a-z0-9-]*)")


def steps(name: str) -> list[dict[str, Any]]:
    """All steps of all jobs of a workflow."""
    return [step for job in yaml.safe_load(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]


def targets(name: str) -> list[str]:
    """What a workflow makes."""
    return [target for step in steps(name) for target in MAKE.findall(step.get("run", ""))]


def test_ci_and_a_person_run_the_same() -> None:
    assert targets("ci") == MAKE.findall((PROJECT / ".ci" / "run").read_text()) == ["check", "test", "test-deep"]
    assert targets("nightly") == ["test-deep", "test-deep"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_bounded_and_pinned(name: str) -> None:
    workflow = yaml.safe_load(WORKFLOWS[name])
    assert set(targets(name)) <= set(re.findall(r"^([a-z0-9-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    assert all(job["timeout-minutes"] < 360 for job in workflow["jobs"].values())
    assert "group" in workflow["concurrency"]
    used = [step["uses"] for step in steps(name) if "uses" in step]
    assert len(used) >= 4
    assert [action for action in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", action)] == []
    assert all("persist-credentials" in step["with"] for step in steps(name) if "checkout" in step.get("uses", ""))


def test_workflows_use_one_commit_of_an_action() -> None:
    used = {tuple(step["uses"].split("@")) for name in WORKFLOWS for step in steps(name) if "uses" in step}
    assert len(used) == len({action for action, _ in used})

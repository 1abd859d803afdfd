"""The classes of Spark that set-up keeps: a JVM takes them, one that cannot says nothing, and they are kept again for
other packages only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
ARCHIVE = PROJECT / "build" / "spark-classes.jsa"
SUBMIT = Path(sys.executable).with_name("spark-submit")

pytestmark = pytest.mark.pure


def test_what_spark_submit_starts_takes_its_classes_from_there(tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    options = subprocess.run(
        ["bash", "-c", f". '{PROJECT}/tools/env.sh' && printf %s \"$SPARK_SUBMIT_OPTS\""],
        env=os.environ | {"SPARK_SUBMIT_OPTS": f"-Xlog:class+load:file={log}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f'"-XX:SharedArchiveFile={ARCHIVE}"' in options
    env = os.environ | {"SPARK_SUBMIT_OPTS": options}
    subprocess.run([SUBMIT, "--version"], env=env, capture_output=True, check=True)
    loaded = log.read_text().splitlines()
    taken = [line for line in loaded if line.endswith("shared objects file (top)")]
    assert len([line for line in taken if " org.apache.spark." in line]) > 50, loaded[:50]


def test_a_java_that_cannot_use_them_says_nothing_of_it() -> None:
    words = [f"-XX:SharedArchiveFile={ARCHIVE}", "-Xlog:cds*=off", "-cp", "/nowhere.jar", "-version"]
    done = subprocess.run(["java", *words], capture_output=True, text=True, check=True)
    plain = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", plain.stderr)


def test_they_are_kept_again_only_for_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools import prepare

    made: list[Path] = []
    pins = "pyspark==1"
    fails = False

    def run(step: str, command: Any, **_: Any) -> None:
        if fails:
            raise prepare.SetupFailed(f"{step}: failed with exit code 1")
        *_, archive = command
        made.append(archive)
        archive.write_text(pins)

    archive = tmp_path / "spark-classes.jsa"
    monkeypatch.setattr(prepare, "CLASS_ARCHIVE", archive)
    monkeypatch.setattr(prepare, "KEPT_FOR", archive.with_suffix(".txt"))
    monkeypatch.setattr(prepare, "run", run)
    monkeypatch.setattr(prepare, "pins", lambda: pins)
    for _ in range(2):
        prepare.prepare_class_archive()
    assert made == [archive]
    pins = "pyspark==2"
    prepare.prepare_class_archive()
    assert archive.read_text() == "pyspark==2"
    pins, fails = "pyspark==3", True
    prepare.prepare_class_archive()  # set-up goes on
    assert not archive.exists(), "no JVM can use the classes of other packages"


def test_they_are_kept_again_for_another_java_which_may_be_at_java_home_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tools import prepare

    made: list[str] = []
    archive = tmp_path / "spark-classes.jsa"
    monkeypatch.setattr(prepare, "CLASS_ARCHIVE", archive)
    monkeypatch.setattr(prepare, "KEPT_FOR", archive.with_suffix(".txt"))
    monkeypatch.setattr(prepare, "run", lambda step, command: made.append(step))
    monkeypatch.setattr(prepare, "pins", lambda: "pyspark==1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    for version, times in (("17", 1), ("17", 1), ("21", 2)):
        java.write_text(f"#!/bin/sh\necho openjdk {version} >&2\n")
        java.chmod(0o755)
        prepare.prepare_class_archive()
        assert len(made) == times, version

"""Peers on Spark: what cannot be had is reported in a line and breaks nothing; what ran is shown."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import spark as spark_peers
from benchmarks.peers.spark import ENVIRONMENTS, PEERS, Jar, install
from benchmarks.report_spark import spark_peers as shown
from benchmarks.workload import CurrentRows, Workload
from tidemark.model.collection import Envelope

pytestmark = pytest.mark.pure


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where peers are installed: the Python environments are there, no jar is, and there is no `mvn` on PATH."""
    for name, packages in ENVIRONMENTS.items():
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
        (tmp_path / name / "installed.txt").write_text("\n".join(packages))
    for module in (spark_peers, install):
        monkeypatch.setattr(module, "PEERS_HOME", tmp_path)
    (tmp_path / "programs").mkdir()
    (tmp_path / "fetched").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    return tmp_path


def maven(home: Path, script: str) -> None:
    """A `mvn` that is this shell script."""
    program = home / "programs" / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_without_maven_each_peer_is_left_out_in_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.install() == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"{name} is left out: its jars are fetched by Maven, and there is no `mvn` on PATH" for name in PEERS
    ]
    assert not any(peer.installed for peer in PEERS.values())


def test_a_maven_that_fails_is_asked_once_for_each_jar(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maven(home, f"echo asked >> {home}/asked; echo '[ERROR] no such host'; exit 1")
    assert install.install() == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(PEERS)
    assert all(line.endswith("cannot be had here: [ERROR] no such host") for line in said)
    assert len((home / "asked").read_text().splitlines()) == len({peer.jars[0] for peer in PEERS.values()})


def test_a_jar_of_other_bytes_is_not_taken(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = hashlib.sha256(b"jar\n").hexdigest()
    jars = (Jar("g:right:1", good), Jar("g:wrong:1", good.replace(good[0], "x")))
    monkeypatch.setattr(install, "PEERS", {"one": spark_peers.Peer("spark-4.1", jars, "", "")})
    folder = home / "fetched"
    maven(home, f"echo jar > {folder}/right-1.jar; echo jar > {folder}/wrong-1.jar")
    assert install.install() == 0
    assert capsys.readouterr().err == f"one is left out: g:wrong:1 has SHA-256 {good}, not {jars[1].sha256}\n"
    assert [path.name for path in (home / "jars").iterdir()] == ["right-1.jar"]


def test_late_rows_change_what_happened_before_them_only() -> None:
    workload = Workload(Envelope.UPSERT, base=500, ingests=3, rows=200)
    contents, last = CurrentRows(workload.feed), dict[int, tuple[int, int]]()  # id: (event time, amount or −1 for none)
    for day in range(5):
        rows = workload.day(day) if day < 4 else contents.late(workload, day)
        if day == 4:
            assert not rows.deleted.any()
            assert rows.happened_at.max() < workload.feed.interval(4).lower
            assert not {int(id) for id in rows.id} & {id for id, (_, amount) in last.items() if amount < 0}
        found = contents.after(rows)
        for at in np.argsort(rows.happened_at, kind="stable"):
            id, when = int(rows.id[at]), int(rows.happened_at[at])
            if when >= last.get(id, (0, 0))[0]:
                last[id] = (when, -1 if rows.deleted[at] else int(rows.amount[at]))
        amounts = {id: amount for id, (_, amount) in last.items() if amount >= 0}
        assert found["rows"] == len(amounts)
        assert found["amounts"] == sum(amounts.values())
        assert found["amount_by_id"] == sum(amount * (id % 1009) for id, amount in amounts.items())
    assert all((contents.of(id)["rows"] == 1) == (id in amounts) for id in range(500))


def test_an_engine_that_failed_is_shown_with_its_reason() -> None:
    [table] = shown({"runs": [{"engine": "Delta", "error": "not done after 3600 s"}]})
    assert table.rows == (("Delta", "not done after 3600 s", *["-"] * 7),)
    assert len(table.headings) == len(table.rows[0])

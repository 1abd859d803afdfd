"""The apps as spark-submit runs them, from the project's zip alone, and executors that are processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidemark
from tests.spark.support import ALL, Made, day_of
from tests.support.bare_python import bare_python
from tests.support.budget import budget
from tests.support.standalone import Cluster
from tidemark import __version__
from tidemark.jobs.queries.verify import verify
from tidemark.storage.sidecars import parts_table
from tools.build_zip import build

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

PROJECT = Path(__file__).resolve().parents[2]


MARK = "-from-the-zip"
SUBMITTED = budget(ci=("drain",), deep=("ingest", "drain", "compact", "gate", "audit"))
"""What starts a JVM; steps that are none of these `make test` runs in this process."""


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's zip as tools/build_zip.py makes it, of sources whose version tells them from the project's own."""
    folder = tmp_path_factory.mktemp("zip")
    sources = shutil.copytree(PROJECT / "include" / "tidemark", folder / "source" / "tidemark")
    about = sources / "__init__.py"
    about.write_text(about.read_text().replace(f'"{__version__}"', f'"{__version__}{MARK}"'))
    build(source_root=folder / "source", target=folder / "tidemark.zip")
    return folder / "tidemark.zip"


def submit(
    zipped: Path, app: Path, *words: str, conf: tuple[str, ...] = ("spark.master=local[2]",), spark: bool = True
) -> dict[str, Any]:
    """The app's last line of standard output."""
    done = submitted(zipped, app, *words, conf=(*conf, "spark.ui.enabled=false"), spark=spark)
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    said = done.stdout + done.stderr  # Spark merges the two streams of a Python driver
    assert "step" not in answer or f"tidemark {__version__}{MARK} {answer['step']} " in said, (
        "the package is not the zip's"
    )
    return answer


def submitted(
    zipped: Path, app: Path, *words: str, conf: tuple[str, ...], spark: bool = True
) -> subprocess.CompletedProcess[str]:
    """An app that has ended; nothing but the zip can give it the package. Apps that need no `spark` are run by Python:
    they are the same, and no JVM starts."""
    hidden = {"PYTHONPATH", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "TIDEMARK_HOME"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "TIDEMARK_DOCS": str(zipped.parent / "docs"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    flags = [flag for pair in conf for flag in ("--conf", pair)]
    command = ["spark-submit", *flags, "--py-files", str(zipped)] if spark else [sys.executable]
    if not spark:
        env["PYTHONPATH"] = str(zipped)
    return subprocess.run(
        [*command, str(app), *words],
        env=env,
        cwd=zipped.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def totals(made: Made) -> Any:
    state = made.log.load().state
    trace = [(batch.rows, batch.digest, batch.description, batch.level) for batch in state.trace]
    return state.seal, trace, [(batch.rows, batch.digest) for batch in state.unsealed]


def test_every_app_runs_from_the_zip(zipped: Path, tmp_path: Path) -> None:
    here, there = Made(tmp_path / "here", ALL["upsert"]), Made(tmp_path / "there", ALL["upsert"])
    for made in (here, there):
        for day in (1, 2, 3):
            made.land(day, 200, keys=30)
        for day in (1, 2):
            made.moved(day)
    here.moved(3)  # one batch more than may be alive: its run merges
    here.step("compaction", 3)
    interval = day_of(3)
    words = ["--root", str(there.root), "--collection", there.name]
    words += ["--lower", str(interval.lower), "--upper", str(interval.upper)]
    more = {"ingest": ["--landing", str(there.landing)], "gate": ["--gate", "compaction"]}
    for step in ("ingest", "seal", "drain", "compact", "gate"):
        if step not in (*SUBMITTED, "seal"):
            there.step("compaction" if step == "gate" else step, 3)
            continue
        app = PROJECT / "spark_apps" / f"{step}.py"
        result = submit(zipped, app, *words, *more.get(step, []), spark=step != "seal")
        assert (result["step"], result["collection"], result["outcome"]) == (step, there.name, "applied")
    assert totals(there) == totals(here)
    if "audit" in SUBMITTED:
        audit = submit(zipped, PROJECT / "spark_apps" / "audit.py", *words[:4])
        assert (audit["outcome"], audit["parts_read"]) == ("sound", audit["parts"])
    app = PROJECT / "spark_apps" / "collect.py"
    collected = submit(zipped, app, *words[:4], "--keep-versions", "2h", spark=False)
    assert (collected["step"], collected["failed"], collected["oldest_version"]) == ("collect", 0, 1)
    assert verify(there.job(), data=True).findings == ()


def test_a_lagging_task_is_run_twice_and_counts_once_and_executors_use_the_zip(
    zipped: Path, tmp_path: Path, cluster: Cluster
) -> None:
    made, marks = Made(tmp_path, ALL["append"]), tmp_path / "marks"
    marks.mkdir()
    made.land(1, 300, keys=40)
    made.land(2, 300, keys=40)
    made.moved(1, "ingest")
    interval = day_of(2)
    conf = (
        f"spark.master={cluster.master}",
        "spark.driver.host=127.0.0.1",
        "spark.executor.memory=512m",
        "spark.cores.max=2",  # both: an attempt beside the other
        "spark.speculation=true",
        "spark.speculation.interval=100ms",
        "spark.speculation.quantile=0.5",
        "spark.speculation.multiplier=1.1",
        "spark.speculation.minTaskRuntime=100ms",
    )
    words = (str(made.root), made.name, str(made.landing), str(interval.lower), str(interval.upper), str(marks))
    found = submit(zipped, PROJECT / "tests/spark/apps/cluster.py", *words, conf=conf)
    assert found["attempts"] == 2, "Spark did not speculate: nothing was tested"
    assert found["result"]["outcome"] == "applied"
    assert found["result"]["rows"] + found["result"]["late_discarded"] == 300
    batch = made.log.load().state.unsealed[-1]
    named = {part.file.key for part in parts_table.parts_of(made.store, [batch])}
    written = [info.key for info in made.store.list(f"data/{batch.id}/") if info.key.endswith(".parquet")]
    late = {key for key in written if "/late-" in key}  # each attempt has one, of rows from before their day
    assert (len(named), len(late)) == (2, 3)
    assert len({*written} - late - named) == 1, "the attempt that lost left an orphan, and only that"
    assert verify(made.job(), data=True).findings == ()
    assert found["origins"]
    assert all(f"/{zipped.name}/tidemark/" in origin for origin in found["origins"]), found["origins"]


def test_executors_without_tidemark_get_that_of_the_session(tmp_path: Path, cluster: Cluster) -> None:
    made = Made(tmp_path, ALL["append"])
    made.land(1, 300, keys=40)
    made.land(2, 300, keys=40)
    made.moved(1)
    done = subprocess.run(
        [
            *(sys.executable, str(PROJECT / "tests/spark/apps/elsewhere.py"), cluster.master),
            *(str(made.root), made.name, str(made.landing), str(day_of(2).lower), str(day_of(2).upper)),
        ],
        env={**os.environ, "PYSPARK_PYTHON": str(bare_python(tmp_path)), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == len(tidemark.open(str(made.root), made.name).as_of().to_arrow())
    assert found["result"]["outcome"] == "applied"
    assert found["origins"]
    assert all(origin.endswith(".zip/tidemark/__init__.py") for origin in found["origins"]), found["origins"]

"""Nobody else on the machine or the network can see into our Sparks, and nothing is left behind them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.launch.conftest import LIGHT
from tests.launch.support import context, eventually, is_dead, started, toy
from tests.launch.test_resident import facts, run, server_of
from tidemark.airflow.app_operator import AppOperator
from tidemark.resident.client import Resident
from tidemark.resident.confined import private_conf, private_environment, shown, write_properties
from tidemark.resident.scratch import MARK, Scratch, sweep
from tidemark.resident.server_folder import ServerFolder, Settings

SECRET = "do-not-show-3f9a"


def processes_of(mark: Path) -> list[psutil.Process]:
    """Those whose scratch folder is below `mark`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(str(mark)):
                found.append(process)
        except psutil.Error:
            continue
    return found


def listening(processes: list[psutil.Process]) -> set[tuple[str, int]]:
    return {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def temporary() -> set[str]:
    """What Spark and Java leave below /tmp if they are let."""
    patterns = ("spark-*", "blockmgr-*", "artifacts-*", "hsperfdata_*/*", "liblz4*", "snappy*", "libnetty*")
    return {str(path) for pattern in patterns for path in Path("/tmp").glob(pattern)}


def contents(folder: Path) -> dict[str, str]:
    """What is in a folder, with the texts of files: what fails may have said why."""
    found = folder.rglob("*")
    return {str(path): path.read_text(errors="replace") if path.is_file() else "" for path in found}


def belongs(path: str, pids: set[int]) -> bool:
    """Whether a leftover is of one of these processes: other sessions use the folder too."""
    return "hsperfdata" in path and int(Path(path).name) in pids


@pytest.mark.spark
class TestResident:
    def test_it_listens_on_the_loopback_interface_and_is_authenticated(
        self, resident: Resident, place: ServerFolder
    ) -> None:
        found = facts(resident)
        tree = [server_of(place), *server_of(place).children(recursive=True)]
        addresses = listening(tree)
        assert len(addresses) >= 3, "Spark's RPC, its blocks and py4j are not where this test looks"
        assert {ip for ip, _ in addresses} == {"127.0.0.1"}
        assert found["conf"]["spark.authenticate"] == "true"

    def test_who_does_not_know_the_secret_is_not_let_in(self, resident: Resident) -> None:
        ended, lines = run(resident, "stranger")
        assert ended.code == 0
        assert json.loads(lines[-1]) == {"step": "stranger", "without": False, "with": True}

    def test_no_setting_is_in_a_command_line(self, folder: Path) -> None:
        place = ServerFolder(folder / "r.sock")
        settings = dataclasses.replace(
            LIGHT, conf={"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.x": 'a "b" \\ ü=:'}
        )
        resident = Resident(settings, place)
        seen: list[str] = []
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.01):
                seen.extend(line for line in _command_lines() if SECRET in line)

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            conf = facts(resident)["conf"]
        finally:
            over.set()
            watcher.join()
        assert conf["spark.hadoop.fs.s3a.secret.key"] == SECRET
        assert conf["spark.x"] == 'a "b" \\ ü=:'
        assert not seen
        assert SECRET not in place.log.read_text()
        assert list(folder.rglob("*.properties")) == [], "the file is needed for the start only"
        assert resident.stop(now=True)
        with suppress(AssertionError):
            eventually("nothing is left of it", lambda: not folder.exists())
        assert not folder.exists(), contents(folder)

    def test_temporary_files_are_below_its_folder_and_go_with_the_run(
        self, resident: Resident, place: ServerFolder
    ) -> None:
        found = facts(resident)
        run_folder = Path(found["temporary"])
        assert place.scratch in run_folder.parents
        eventually("it is removed", lambda: not run_folder.exists())
        pids = {p.pid for p in server_of(place).children(recursive=True)}
        assert not [path for path in temporary() if belongs(path, pids)]
        assert any(
            name.startswith("blockmgr-") for name in [path.name for path in next(place.scratch.iterdir()).iterdir()]
        )


@pytest.mark.spark
class TestSubmit:
    def test_a_local_one_is_private_and_leaves_nothing(self, on_airflow: Path, place: ServerFolder) -> None:
        place.prepare()
        before = temporary()
        task = AppOperator(
            task_id="toy",
            app="linger",
            application=toy("linger"),
            app_args=[str(on_airflow), "--job"],
            launcher="submit",
            conf={"spark.hadoop.fs.s3a.secret.key": SECRET},
            env_vars={"WORD": SECRET},
        )
        thread = threading.Thread(target=task.execute, args=[context()])
        thread.start()
        try:
            started(on_airflow)
            tree = processes_of(place.submits)
            addresses = listening(tree)
            command_lines = _command_lines()
            properties = list(place.submits.rglob("*.properties"))
            modes = {path.stat().st_mode & 0o777 for path in [*properties, *place.submits.iterdir()]}
        finally:
            (on_airflow / "go").touch()
            thread.join(60)
        assert {p.name() for p in tree if not is_dead(p.pid)} == set(), "a process is left"
        assert len(addresses) >= 2
        assert {ip for ip, _ in addresses} == {"127.0.0.1"}
        assert not [line for line in command_lines if SECRET in line]
        assert len(properties) == 1
        assert modes == {0o600, 0o700}
        assert not place.submits.exists()
        assert {path for path in temporary() - before if belongs(path, {p.pid for p in tree})} == set()


SHUFFLES = """
import json, os
from tidemark.spark.session import session
spark = session("private")
assert spark.range(1000, numPartitions=2).repartition(3).distinct().count() == 1000
system = spark.sparkContext._jvm.System
folder = system.getProperty("java.io.tmpdir")
made = [os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files]
print(json.dumps([folder, os.stat(folder).st_mode & 0o7777, [name for name in made if "shuffle_" in name]]))
"""


@pytest.mark.spark
class TestInProcess:
    """As the command line and notebooks start one."""

    def test_what_it_shuffles_is_in_a_folder_of_its_own_that_goes_with_it(self, tmp_path: Path) -> None:
        chosen = ("SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS", "PYSPARK_GATEWAY_PORT", "SPARK_HOME")
        env = {name: value for name, value in os.environ.items() if name not in chosen}
        env |= {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        env |= {"PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
        done = subprocess.run(
            [sys.executable, "-c", SHUFFLES], env=env, umask=0, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        folder, mode, shuffled = json.loads(done.stdout.splitlines()[-1])
        assert (Path(folder).parent, mode) == (tmp_path, 0o700)
        assert shuffled, "what it shuffles is not where this test looks"
        assert list(tmp_path.iterdir()) == []


@pytest.mark.pure
class TestSettings:
    def test_a_cluster_is_not_bound_to_this_machine(self) -> None:
        assert private_conf("spark://m:7077") == private_conf("yarn") == private_conf("k8s://https://m") == {}
        assert "SPARK_LOCAL_IP" not in private_environment("yarn", Path("/s"), {})

    @pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]", "local-cluster[1,1,1024]"])
    def test_a_local_one_is(self, master: str) -> None:
        conf = private_conf(master)
        assert conf["spark.driver.bindAddress"] == conf["spark.driver.host"] == "127.0.0.1"
        assert conf["spark.authenticate"] == "true"
        assert ("spark.authenticate.secret" in conf) == master.startswith("local-cluster")

    def test_options_of_the_user_stay(self) -> None:
        options = private_environment("local", Path("/a b"), {"SPARK_SUBMIT_OPTS": "-Da=b"})["SPARK_SUBMIT_OPTS"]
        assert options == '-Da=b -XX:-UsePerfData "-Djava.io.tmpdir=/a b"'

    def test_properties_are_read_back_by_java_s_rules(self, tmp_path: Path) -> None:
        write_properties(tmp_path / "p", {"a b": " c\n=\\", "k": "v"}, before="k=w")
        assert (tmp_path / "p").read_text() == "k=w\na\\ b=\\ c\\n=\\\\\nk=v\n"
        assert (tmp_path / "p").stat().st_mode & 0o777 == 0o600
        with pytest.raises(FileExistsError):
            write_properties(tmp_path / "p", {})

    def test_messages_show_no_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert shown("spark.hadoop.fs.s3a.secret.key", SECRET) == "spark.hadoop.fs.s3a.secret.key=***"
        assert shown("spark.executor.memory", "9g") == "spark.executor.memory=9g"
        for wrong in (f'{{"a": "{SECRET}"', f'["{SECRET}"]'):
            with pytest.raises(Exception, match="TIDEMARK_RESIDENT_CONF") as raised:
                Settings.from_environ({"TIDEMARK_RESIDENT_CONF": wrong}, master="local")
            assert SECRET not in str(raised.value)


@pytest.fixture
def bystander() -> Iterator[Any]:
    """A process of ours that has nothing to do with any of it."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.pure
class TestScratch:
    def test_it_is_private_and_locked_while_its_owner_lives(self, tmp_path: Path) -> None:
        mine = Scratch.make(tmp_path / "s")
        assert mine.path.stat().st_mode & 0o777 == 0o700
        sweep(tmp_path / "s")
        assert mine.path.is_dir()
        mine.remove()
        assert not (tmp_path / "s").exists()

    def test_what_a_dead_owner_left_goes_whoever_has_its_number_now(self, tmp_path: Path, bystander: Any) -> None:
        for name in (f"{bystander.pid:08}", f"{os.getpid():08}", "00000abc"):
            (tmp_path / "s" / name / "blockmgr-1").mkdir(parents=True)
        mine = Scratch.make(tmp_path / "s")
        assert list((tmp_path / "s").iterdir()) == [mine.path]
        assert bystander.poll() is None
        mine.remove()

    def test_a_process_a_dead_owner_left_is_ended_even_stopped(self, tmp_path: Path) -> None:
        left = tmp_path / "s" / "00000abc"
        left.mkdir(parents=True)
        process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: str(left)})
        psutil.Process(process.pid).suspend()
        sweep(tmp_path / "s")
        assert is_dead(process.pid)
        process.wait()
        assert not left.exists()

    def test_a_process_that_shows_no_environment_yet_is_looked_at_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tidemark.resident.scratch._STARTED_WITHIN_S", 30)  # the shell may be delayed
        left = tmp_path / "s" / "00000abc"
        left.mkdir(parents=True)
        # not by `env`: that would for a moment be a process with an environment and without the mark
        become = f"sleep 0.2; {MARK}={left} exec sleep 60"
        process = subprocess.Popen(["/bin/sh", "-c", become], env={})
        sweep(tmp_path / "s")
        assert is_dead(process.pid)
        process.wait()

    def test_the_first_process_of_a_machine_sweeps_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As in a container: none has a lower number, so it is the first that it looks at."""
        own = psutil.Process()
        monkeypatch.setattr(psutil, "process_iter", lambda: iter([own]))
        monkeypatch.setenv(MARK, str(tmp_path / "s" / "00000abc"))
        (tmp_path / "s" / "00000abc").mkdir(parents=True)
        sweep(tmp_path / "s")
        assert not (tmp_path / "s").exists()

    def test_a_process_that_never_has_one_holds_nothing_up_for_ever(self, tmp_path: Path) -> None:
        process = subprocess.Popen(["/bin/sleep", "60"], env={})
        try:
            (tmp_path / "s" / "00000abc").mkdir(parents=True)
            sweep(tmp_path / "s")
            assert not is_dead(process.pid)
            assert not (tmp_path / "s").exists()
        finally:
            process.kill()
            process.wait()

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "precious" / "file").mkdir(parents=True)
        (tmp_path / "s").mkdir()
        (tmp_path / "s" / "00000abc").symlink_to(tmp_path / "precious")
        sweep(tmp_path / "s")
        assert (tmp_path / "precious" / "file").is_dir()


def _command_lines() -> list[str]:
    lines = []
    for process in psutil.process_iter():
        try:
            lines.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return lines

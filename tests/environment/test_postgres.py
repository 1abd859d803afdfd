"""The PostgreSQL of the local Airflow: whatever a kill or a switched-off machine left, it starts, with its data."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import psycopg2
import pytest

from tools.postgres import NOBODY, SOCKET, Postgres, PostgresFailed

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="tm-"))  # short: a socket's path has 103 bytes
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def made(folder: Path) -> Iterator[Postgres]:
    """A server that the module's tests start and kill."""
    server = Postgres(folder / "postgres", folder / "sockets", durable=False)
    server.make()
    with server.serving(folder / "log"):
        server.create_database("airflow")
    yield server
    server.stop()


def ask(server: Postgres, question: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(server.url("airflow").replace("+psycopg2", ""))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(question)
        found = cursor.fetchall() if cursor.description else []
    connection.close()
    return found


def start(server: Postgres) -> subprocess.Popen[bytes]:
    """The server, left to itself."""
    log = server.data.parent / "log"
    server.prepare()
    with log.open("a") as stream:
        process = subprocess.Popen(server.command(), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
    server.wait_ready(process, log)
    return process


@contextmanager
def bystander(*words: str) -> Iterator[psutil.Popen]:
    """A process of bash, of the user that the server runs as; ended with the block, whatever fails in it."""
    user = NOBODY if os.geteuid() == 0 else None
    # A shell that starts tests in the background lets them ignore SIGINT, and what they start.
    interruptible = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with psutil.Popen(["bash", *words], user=user, preexec_fn=interruptible) as process:
        try:
            while process.cmdline()[:1] == ["bash"]:  # it takes the name it was given a moment later
                time.sleep(0.01)
            yield process
        finally:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def test_a_folder_of_sockets_keeps_what_others_put_there(folder: Path) -> None:
    server = Postgres(folder / "none", folder / "theirs")
    server.sockets.mkdir(mode=0o700)
    for name in (SOCKET, f"{SOCKET}.lock", "notes.txt"):
        (server.sockets / name).touch()
    server.remove_sockets()
    assert [path.name for path in server.sockets.iterdir()] == ["notes.txt"]


def test_a_killed_server_starts_again_with_its_data(made: Postgres) -> None:
    process = start(made)
    ask(made, "create table figures as select 7 as figure")
    ask(made, "checkpoint")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not made.is_ready()
    with made.serving(made.data.parent / "log"):
        assert ask(made, "select figure from figures") == [(7,)]
    assert made.processes() == []
    assert not made.sockets.exists()


def test_a_killed_server_whose_children_still_end_is_started_again(made: Postgres) -> None:
    """They outlive it for a moment, and look like a server that runs."""
    with bystander("-c", f"exec -a 'postgres: {made.name}: checkpointer' sleep 600") as child:
        assert not made.is_running()
        with made.serving(made.data.parent / "log"):
            assert ask(made, "select 1") == [(1,)]
        assert child.wait() < 0
    assert made.processes() == []


def test_pid_files_of_a_machine_that_was_switched_off_stand_in_no_ones_way(made: Postgres) -> None:
    """Their pid is another process's by now, to which PostgreSQL by itself gives way."""
    with bystander("-c", "exec sleep 600") as other:
        made.sockets.mkdir(mode=0o700)
        now = int(psutil.boot_time())
        text = f"{other.pid}\n{made.data}\n{now}\n5432\n{made.sockets}\n\n   123   456\nready   \n"
        (made.data / "postmaster.pid").write_text(text)
        (made.sockets / f"{SOCKET}.lock").write_text(text)
        (made.sockets / SOCKET).touch()
        with made.serving(made.data.parent / "log"):
            assert ask(made, "select 1") == [(1,)]
        assert other.is_running()


def test_two_servers_side_by_side_know_their_own_processes(made: Postgres, folder: Path) -> None:
    other = Postgres(folder / "other" / "postgres", folder / "other" / "sockets", durable=False)
    other.make()
    with made.serving(folder / "log"), other.serving(folder / "other.log"):
        both = {process.pid for process in made.processes()}, {process.pid for process in other.processes()}
        assert all(both)
        assert not both[0] & both[1]
        made.stop()
        assert {process.pid for process in other.processes()} == both[1]


def test_the_network_and_other_users_do_not_reach_it(made: Postgres) -> None:
    process = start(made)
    listening = [c for p in made.processes() for c in p.net_connections(kind="inet") if c.status == "LISTEN"]
    assert listening == []
    assert ask(made, "show listen_addresses") == [("",)]
    assert made.sockets.stat().st_mode & 0o077 == 0
    assert made.data.stat().st_mode & 0o077 == 0
    made.stop()
    process.wait()


def test_a_folder_that_others_may_enter_or_have_put_there_is_refused(folder: Path) -> None:
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    link = folder / "link"
    link.symlink_to(open_to_all)
    for sockets in (open_to_all, link):
        with pytest.raises(PostgresFailed, match=r"must be a folder of user .* TIDEMARK_AIRFLOW_SOCKETS"):
            Postgres(folder / "none", sockets).prepare()


def test_a_path_too_long_for_a_socket_is_refused(folder: Path) -> None:
    with pytest.raises(PostgresFailed, match=r"has .* bytes, 103 are possible"):
        Postgres(folder / "none", folder / ("s" * 100)).prepare()


def test_data_of_another_version_are_named_and_left_alone(folder: Path) -> None:
    old = Postgres(folder / "old", folder / "sockets")
    old.data.mkdir()
    (old.data / "PG_VERSION").write_text("11\n")
    with pytest.raises(PostgresFailed, match=r"was made by PostgreSQL 11, \d+ is installed"):
        old.make()
    assert [path.name for path in old.data.iterdir()] == ["PG_VERSION"]


@pytest.mark.parametrize("home", ["/short/.airflow", "/a home/.airflow", "/50%/.airflow", "/deep/" * 30 + ".airflow"])
def test_the_socket_has_a_place_wherever_the_home_is(home: str) -> None:
    script = '. tools/env.sh; printf "%s %s" "$TIDEMARK_AIRFLOW_SOCKETS" "$AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"'
    environment = {**os.environ, "TIDEMARK_AIRFLOW_HOME": home}
    environment.pop("TIDEMARK_AIRFLOW_SOCKETS", None)
    said = subprocess.run(
        ["bash", "-c", script], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    )
    sockets, address = said.stdout.split(" ")
    assert address == f"postgresql+psycopg2://postgres@/airflow?host={sockets}"
    assert len(f"{sockets}/{SOCKET}") <= 103
    assert (sockets == f"{home}/sockets") is (home == "/short/.airflow")

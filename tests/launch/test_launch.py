"""The parts of the launchers that need neither Spark nor Airflow's database."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tests.launch.conftest import LIGHT
from tests.launch.support import context, eventually, is_dead
from tests.support.measured import Measure
from tidemark.airflow.launch import MAX_LINE, ResultLine, attempt_token, settle
from tidemark.airflow.submit_hook import kill_tree
from tidemark.errors import InvalidUsage
from tidemark.resident.client import Resident
from tidemark.resident.protocol import MAX_PACKET, MAX_REQUEST, ambient, is_trusted, pair, peer
from tidemark.resident.server_folder import PACKAGE, ServerFolder, Settings, fingerprint

pytestmark = pytest.mark.pure


def seen(*lines: str) -> ResultLine:
    result = ResultLine()
    for line in lines:
        result.see(line)
    return result


class TestResultLine:
    def test_the_last_one_counts(self) -> None:
        assert seen('{"step": 1}', "noise", ' {"step": 2}\n', "26/11/21 WARN {x}").value == {"step": 2}

    @pytest.mark.parametrize("line", ['[Stage 0:>  (0 + 2) / 2]\r{"step": 1}', '{"step": 1}26/11/21 WARN {"step": 2}'])
    def test_what_another_stream_left_on_its_line_is_ignored(self, line: str) -> None:
        assert seen(line).value == {"step": 1}

    @pytest.mark.parametrize("line", ["", "[1]", "{}", '{"a": 1}', "{broken}", '{"step": 1', "{" * 9000 + "}"])
    def test_other_lines_are_none(self, line: str) -> None:
        assert seen(line).value is None

    def test_a_huge_line_is_none(self) -> None:
        assert seen('{"step": "' + "x" * MAX_LINE + '"}').value is None


class TestSettle:
    def test_done(self) -> None:
        assert settle("seal", 0, 0, seen('{"step": "seal"}')) == {"step": "seal"}

    @pytest.mark.parametrize(
        ("code", "number", "line", "message"),
        [
            (75, 0, '{"step": "s", "error": {"kind": "Contention", "message": "lost"}}', "Contention: lost"),
            (1, 0, "Traceback", "exit 1 and no result; the last line was 'Traceback'"),
            (0, 9, '{"step": "s"}', "signal 9"),
            (143, 0, '{"step": "s"}', "exit 143"),
            (0, 0, "bye", "without its result line; the last line was 'bye'"),
            (0, 0, '{"step": "s", "error": {"kind": "K", "message": "m"}}', "K: m"),
        ],
    )
    def test_retried(self, code: int, number: int, line: str, message: str) -> None:
        with pytest.raises(AirflowException, match=message) as raised:
            settle("seal", code, number, seen(line))
        assert not isinstance(raised.value, AirflowFailException)

    def test_not_retried_only_where_the_app_says_so(self) -> None:
        with pytest.raises(AirflowFailException, match="seal: GateFailed: 3 rows"):
            settle("seal", 1, 0, seen('{"step": "s", "error": {"kind": "GateFailed", "message": "3 rows"}}'))


def test_two_tries_never_share_a_token() -> None:
    assert len({attempt_token(context(n)) for n in (1, 1, 2)}) == 3


class TestPlace:
    def test_a_folder_others_can_enter_is_refused(self, tmp_path: Path) -> None:
        shared = tmp_path / "shared"
        shared.mkdir(mode=0o755)
        with pytest.raises(InvalidUsage, match="mode 755"):
            ServerFolder(shared / "r.sock").prepare()

    def test_a_link_in_place_of_the_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to(tmp_path / "mine")
        with pytest.raises(InvalidUsage, match="must be a folder"):
            ServerFolder(tmp_path / "link" / "r.sock").prepare()

    @pytest.mark.parametrize("squat", [Path.touch, lambda path: path.symlink_to("nowhere")], ids=["file", "link"])
    def test_what_is_no_folder_in_its_place_is_refused(self, tmp_path: Path, squat: Callable[[Path], None]) -> None:
        """As anybody can put it there, below /tmp."""
        squat(tmp_path / "d")
        with pytest.raises(InvalidUsage, match=r"must be a folder of user .*: remove it or set TIDEMARK_RESIDENT_DIR"):
            ServerFolder(tmp_path / "d" / "r.sock").prepare()

    def test_nobody_else_may_enter_the_folders_above_it_that_it_makes(self, tmp_path: Path) -> None:
        """Or they could put another in its place."""
        before = os.umask(0)
        try:
            ServerFolder(tmp_path / "a" / "b" / "r.sock").prepare()
        finally:
            os.umask(before)
        assert [folder.stat().st_mode & 0o777 for folder in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700] * 2

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
    def test_a_folder_of_another_user_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir(mode=0o700)
        os.chown(tmp_path / "d", 65534, 65534)
        with pytest.raises(InvalidUsage, match="user 65534"):
            ServerFolder(tmp_path / "d" / "r.sock").prepare()

    def test_a_path_too_long_for_a_socket_is_refused_before_anything_else(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidUsage, match=r"bytes, 107 are possible: set TIDEMARK_RESIDENT_DIR"):
            ServerFolder(tmp_path / ("x" * 100) / "r.sock")

    def test_files_of_others_beside_it_stay(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir(mode=0o700)
        place = ServerFolder(tmp_path / "d" / "r.sock")
        for folder in (place.scratch, place.submits):
            (folder / "mine").mkdir(parents=True)
            (folder / "0123abcd").mkdir()
        place.tidy(log=True)
        assert [path.name for path in (tmp_path / "d").glob("*/*")] == ["mine", "mine"]
        with pytest.raises(InvalidUsage, match=r"must end in \.sock: what has that name is removed"):
            ServerFolder(tmp_path / "d" / "notes.txt")

    def test_it_has_one_owner(self, tmp_path: Path) -> None:
        place = ServerFolder(tmp_path / "r.sock")
        first = place.own()
        assert first is not None
        assert place.own() is None
        os.close(first)
        again = place.own()
        assert again is not None
        os.close(again)

    def test_the_default_is_private_to_the_user(self) -> None:
        assert ServerFolder.default({"TIDEMARK_RESIDENT_DIR": "/run/x"}).socket.parent == Path("/run/x")
        assert str(os.geteuid()) in ServerFolder.default({}).socket.parent.name


class TestFingerprint:
    def test_is_stable_and_ignores_what_does_not_matter(self) -> None:
        assert fingerprint(LIGHT) == fingerprint(dataclasses.replace(LIGHT, idle_s=3, max_runs=1))

    @pytest.mark.parametrize("change", [{"master": "local[3]"}, {"conf": {"a": "b"}}, {"later": ("json",)}])
    def test_settings_count(self, change: dict[str, object]) -> None:
        assert fingerprint(LIGHT) != fingerprint(dataclasses.replace(LIGHT, **change))  # type: ignore[arg-type]

    def test_the_zip_and_the_source_count(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        zipped = tmp_path / "z.zip"
        zipped.write_bytes(b"1")
        with_zip = dataclasses.replace(LIGHT, py_files=str(zipped))
        before = fingerprint(with_zip)
        zipped.write_bytes(b"2")
        assert fingerprint(with_zip) != before
        monkeypatch.setattr("tidemark.resident.server_folder.PACKAGE", tmp_path)
        (tmp_path / "a.py").write_text("1")
        before = fingerprint(LIGHT)
        (tmp_path / "a.py").write_text("2")
        assert fingerprint(LIGHT) != before


class TestSettings:
    def test_come_back_from_json(self) -> None:
        settings = Settings(master="m", conf={"a": "b"}, later=("x",), idle_s=3.5)
        assert Settings.from_json(settings.to_json()) == settings

    @pytest.mark.parametrize(
        "wrong",
        [("CONF", "{"), ("CONF", "[]"), ("IDLE_S", "soon"), ("MAX_RUNS", "0")],
    )
    def test_wrong_ones_are_refused_by_name(self, wrong: tuple[str, str]) -> None:
        with pytest.raises(InvalidUsage, match=r"TIDEMARK_RESIDENT|must be positive"):
            Settings.from_environ({f"TIDEMARK_RESIDENT_{wrong[0]}": wrong[1]}, master="local[2]")

    def test_executors_elsewhere_get_the_zip(self, tmp_path: Path) -> None:
        (tmp_path / "build").mkdir()
        built, chosen = tmp_path / "build" / "tidemark.zip", tmp_path / "z.zip"
        environ = {"TIDEMARK_HOME": str(tmp_path)}
        assert Settings.from_environ(environ, master="local[2]").py_files == ""
        with pytest.raises(InvalidUsage, match=r"there is no .*/build/tidemark.zip: run `make zip`, or set"):
            Settings.from_environ(environ, master="spark://m:7077")
        built.touch()
        assert Settings.from_environ(environ, master="spark://m:7077").py_files == str(built)
        chosen.touch()
        environ["TIDEMARK_ZIP"] = str(chosen)
        assert Settings.from_environ(environ, master="yarn").py_files == str(chosen)
        assert Settings.from_environ(environ, master="local[2]").py_files == ""


class TestProtocol:
    def test_only_the_owner_is_trusted(self) -> None:
        assert is_trusted(1000, 1000)
        assert not is_trusted(1001, 1000)
        assert not is_trusted(0, 1000)

    def test_the_kernel_says_who_the_peer_is(self) -> None:
        one, other = pair()
        assert peer(one.sock) == (os.getpid(), os.geteuid())
        other.close()

    def test_messages_carry_descriptors_and_an_end(self) -> None:
        one, other = pair()
        read, write = os.pipe()
        assert one.send({"a": [1]}, [write])
        got = other.receive()
        assert got is not None
        message, (fd,) = got
        assert message == {"a": [1]}
        os.write(fd, b"x")
        assert os.read(read, 1) == b"x"
        one.close()
        assert other.receive() is None
        assert not other.send({"b": 1}), "sent to nobody"

    def test_a_stranger_s_bytes_count_as_its_end(self) -> None:
        one, other = pair()
        one.sock.send(b"GET / HTTP/1.1")
        assert other.receive() is None

    def test_a_message_too_long_is_refused(self) -> None:
        one, _ = pair()
        with pytest.raises(InvalidUsage, match="shorten the arguments"):
            one.send({"a": "x" * MAX_PACKET})

    def test_so_is_a_request_the_server_would_have_to_pass_on(self, folder: Path) -> None:
        with pytest.raises(InvalidUsage, match="shorten them"):
            Resident(LIGHT, ServerFolder(folder / "r.sock")).run(Path(__file__), ["x" * MAX_REQUEST], cwd=folder)

    def test_the_environment_is_an_allow_list(self) -> None:
        given = {
            "AWS_REGION": "x",
            "TIDEMARK_ROOT": "r",
            "PATH": "p",
            "AIRFLOW__CORE__FERNET_KEY": "k",
            "LD_PRELOAD": "l",
        }
        assert set(ambient(given)) == {"AWS_REGION", "TIDEMARK_ROOT", "PATH"}


def test_a_server_of_another_user_is_not_talked_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ServerFolder(folder / "r.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(place.socket))
        listener.listen()
        monkeypatch.setattr("tidemark.resident.client.peer", lambda _: (1, os.geteuid() + 1))
        with pytest.raises(InvalidUsage, match="is served by process 1 of user"):
            Resident(LIGHT, place).start()


GUARDED = (
    "import os, sys, time; from tidemark.resident.guard import die_with_parent;"
    "pid = os.fork();\n"
    "if pid: os.write(1, b'%d\\n' % pid); time.sleep(60)\n"
    "parent = os.getppid() if len(sys.argv) == 1 else 1\n"
    "die_with_parent(parent); os.write(1, b'guarded\\n'); time.sleep(60)"
)


def guarded(*argv: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.Popen([sys.executable, "-c", GUARDED, *argv], stdout=subprocess.PIPE, text=True, env=env)


class TestGuard:
    @pytest.mark.measured
    def test_the_child_dies_with_its_parent(self) -> None:
        parent = guarded()
        assert parent.stdout is not None
        words = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
        child = int(next(w for w in words if w.isdigit()))
        assert "guarded" in words
        assert not is_dead(child)
        parent.kill()
        parent.wait()
        eventually("the child dies", lambda: is_dead(child), within=3)

    @pytest.mark.measured
    def test_a_child_whose_parent_is_gone_already_ends_at_once(self) -> None:
        parent = guarded("orphan")
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        eventually("the child ends", lambda: is_dead(child), within=5)
        parent.kill()
        parent.wait()

    def test_without_a_jvm_above_it_the_call_does_nothing(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        code = "from tidemark.resident.guard import die_with_parent; die_with_parent(); print('lives')"
        assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True) == "lives\n"
        env["PYSPARK_GATEWAY_PORT"] = "1"  # as if a JVM had started it that is no longer there
        assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -signal.SIGKILL


@pytest.mark.measured
def test_a_tree_is_killed_to_the_last_leaf_also_in_sessions_of_their_own(measure: Measure) -> None:
    code = (
        "import subprocess, sys, time\n"
        "n = int(sys.argv[1])\n"
        "if n: subprocess.Popen([sys.executable, '-c', sys.argv[2], str(n - 1), sys.argv[2]], start_new_session=True)\n"
        "time.sleep(60)"
    )
    root = subprocess.Popen([sys.executable, "-c", code, "3", code])
    tree = eventually("the tree grows", lambda: (c := psutil.Process(root.pid).children(recursive=True))[2:] and c)
    before = time.monotonic()
    kill_tree(root.pid)
    measure.below("killed within", time.monotonic() - before, 5, "s")
    root.wait()
    assert all(is_dead(p.pid) for p in tree)
    kill_tree(root.pid)  # nothing left: no error

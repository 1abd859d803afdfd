"""Set-up: what is missing is named, what is there is left alone, and the zip is a function of the sources."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import build_zip, byte_code, prepare
from tools.pip_settings import pip_settings, uv_environment, uv_flags

PROJECT = Path(__file__).resolve().parents[2]

# What tools/prerequisites.sh calls beside the two programs it looks for.
ORDINARY = ("bash", "sh", "sed", "head", "dirname", "env")


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder to be the whole PATH: ordinary commands only, no Python and no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ORDINARY:
        found = next(f for place in ("/usr/bin", "/bin") if (f := Path(place, name)).exists())
        (folder / name).symlink_to(found)
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def call(function: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call a function of tools/prerequisites.sh with `path` as PATH."""
    return subprocess.run(
        [path / "bash", "-c", f". tools/prerequisites.sh; {function}"],
        cwd=PROJECT,
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, f"not one line: {done.stderr!r}"
    return done.stderr


def test_no_java(bare_path: Path) -> None:
    said = refusal(call("java_major", bare_path))
    assert said.startswith("Java 17 or newer is needed (none found).")
    assert "apt-get install openjdk-17-jre-headless" in said
    assert "brew install --cask temurin@17" in said


@pytest.mark.parametrize(
    ("banner", "found"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "11.0.22"),
        ('java version "1.8.0_392"', "1.8.0_392"),
    ],
)
def test_java_too_old(bare_path: Path, banner: str, found: str) -> None:
    program(bare_path, "java", f"echo '{banner}' >&2")
    assert found in refusal(call("java_major", bare_path))


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "17"),
        ('openjdk version "21" 2023-09-19 LTS', "21"),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.1" 2025-10-21', "25"),
    ],
)
def test_java_new_enough(bare_path: Path, banner: str, major: str) -> None:
    program(bare_path, "java", f"echo '{banner}' >&2")
    assert call("java_major", bare_path).stdout == f"{major}\n"


def test_java_home_counts_before_path(bare_path: Path) -> None:
    program(bare_path, "java", """echo 'openjdk version "17.0.15"' >&2""")
    said = refusal(call("java_major", bare_path, JAVA_HOME="/nowhere"))
    assert "none found at JAVA_HOME=/nowhere" in said


def test_a_java_that_only_says_where_to_get_one_is_none(bare_path: Path) -> None:
    program(bare_path, "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    assert "none found" in refusal(call("java_major", bare_path))


def test_no_python(bare_path: Path) -> None:
    said = refusal(call("find_python", bare_path))
    assert "(none found on PATH)" in said
    assert "apt-get install python3 python3-venv" in said
    assert "brew install python" in said


def test_python_too_old_is_named_with_its_version(bare_path: Path) -> None:
    program(bare_path, "python3", 'case "$2" in *platform*) echo 3.9.18;; *) exit 1;; esac')
    assert "(python3 is 3.9.18)" in refusal(call("find_python", bare_path))


def test_python_without_venv_is_named(bare_path: Path) -> None:
    program(bare_path, "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    assert "(python3 has no venv module)" in refusal(call("find_python", bare_path))


def test_a_newer_python_is_found_beside_an_old_python3(bare_path: Path) -> None:
    program(bare_path, "python3", "exit 1")
    (bare_path / "python3.12").symlink_to(sys.executable)
    assert call("find_python", bare_path).stdout == f"{bare_path}/python3.12\n"


def test_the_zip_is_a_function_of_names_and_contents(tmp_path: Path) -> None:
    for root, order in (("a", ["one.py", "two.py"]), ("b", ["two.py", "one.py"])):
        package = tmp_path / root / "tidemark" / "model"
        package.mkdir(parents=True)
        for at, name in enumerate(order):
            (package / name).write_text(f"# {name}\n")
            os.utime(package / name, (at, at))
    (tmp_path / "b" / "tidemark" / "__pycache__").mkdir()
    (tmp_path / "b" / "tidemark" / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"compiled")
    assert build_zip.zip_bytes(tmp_path / "a") == build_zip.zip_bytes(tmp_path / "b")


def test_an_unchanged_zip_is_not_written_again(tmp_path: Path) -> None:
    source = tmp_path / "include" / "tidemark" / "__init__.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1\n")
    target = tmp_path / "build" / "tidemark.zip"
    assert [build_zip.build(tmp_path / "include", target) for _ in range(2)] == [True, False]
    source.write_text("x = 2\n")
    assert build_zip.build(tmp_path / "include", target) is True
    assert [path.name for path in target.parent.iterdir()] == ["tidemark.zip"]


def test_the_package_is_imported_from_the_zip_alone(tmp_path: Path) -> None:
    target = tmp_path / "tidemark.zip"
    build_zip.build(target=target)
    with zipfile.ZipFile(target) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"tidemark", "pyspark_tidemark.py"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import tidemark, tidemark.errors; print(tidemark.__file__)"],
        env={"PYTHONPATH": str(target)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(target))


def test_set_up_leaves_byte_code_of_what_runs() -> None:
    subprocess.run([PROJECT / "tools" / "setup"], check=True, stdin=subprocess.DEVNULL)
    [packages] = (PROJECT / ".venv").glob("lib/python3*/site-packages")
    for source in (
        *(packages / name / "__init__.py" for name in ("great_expectations", "pandas", "airflow/sdk", "pyspark")),
        *sorted((PROJECT / "include" / "tidemark").rglob("*.py")),
        *(
            PROJECT / folder / f"{name}.py"
            for folder, name in (("dags", "tidemark_collections"), ("spark_apps", "step"))
        ),
    ):
        assert is_compiled(source), source


def is_compiled(source: Path) -> bool:
    """Whether there is byte code of this Python that Python would take for the source."""
    compiled = Path(importlib.util.cache_from_source(str(source)))
    if not compiled.exists():
        return False
    head, seen = compiled.read_bytes()[:16], source.stat()
    made_of = (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:], "little"))
    return head[:4] == importlib.util.MAGIC_NUMBER and made_of == (int(seen.st_mtime), seen.st_size)


def test_tests_of_packages_and_packages_for_tests_are_not_compiled(tmp_path: Path) -> None:
    files = ("one.py", "pandas/core/api.py", "pandas/tests/test_one.py", "moto/core.py", "pandas/moto/one.py", "bad.py")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n" if name != "bad.py" else "x =\n")
    assert byte_code.compile_folders([tmp_path], workers=1) is False  # for the one that is no Python
    assert [name for name in files if is_compiled(tmp_path / name)] == [
        "one.py",
        "pandas/core/api.py",
        "pandas/moto/one.py",
    ]


def test_the_second_set_up_changes_nothing() -> None:
    # The package itself may have been edited since, hence the first.
    subprocess.run([PROJECT / "tools" / "setup"], check=True, stdin=subprocess.DEVNULL)
    before = made()
    done = subprocess.run(
        [PROJECT / "tools" / "setup"], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert made() == before


@pytest.mark.parametrize("name", ["build", ".venv"])
def test_a_link_is_not_followed_to_where_files_would_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setattr(prepare, "PROJECT", tmp_path)
    monkeypatch.setattr(prepare, "VENV", tmp_path / ".venv")
    for step in ("prepare_packages", "prepare_entry_points", "prepare_byte_code", "prepare_class_archive"):
        monkeypatch.setattr(prepare, step, lambda: pytest.fail("a link was followed"))
    (tmp_path / "mine").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "mine")
    assert prepare.main() == 1
    assert f"{tmp_path / name} is a link to {tmp_path / 'mine'}" in capsys.readouterr().err
    assert not any((tmp_path / "mine").iterdir())


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where set-up makes its environment."""
    folder = tmp_path / ".venv"
    for name, path in {"VENV": "", "PYTHON": "bin/python", "MADE": "made", "INSTALLED": "installed"}.items():
        monkeypatch.setattr(prepare, name, folder / path)
    for name in ("LOG", "COMPILED", "KEPT_FOR"):
        monkeypatch.setattr(prepare, name, tmp_path / name)
    return folder


def test_an_environment_that_set_up_did_not_make_is_not_emptied(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "run", lambda *_: pytest.fail("it would have been emptied"))
    venv.mkdir()
    (venv / "pyvenv.cfg").write_text("theirs")
    with pytest.raises(prepare.SetupFailed, match="was not made by `make setup`, which would empty it; move it away"):
        prepare.prepare_packages()


def test_one_that_was_interrupted_is_made_again(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[str]] = []

    def interrupted(*_: object) -> None:
        found.append(sorted(path.name for path in venv.iterdir()))
        (venv / "bin").mkdir()
        (venv / "bin" / "python").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "run", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            prepare.prepare_packages()
    assert found == [["made"], ["made"]]


def made() -> dict[str, int]:
    """When each thing that set-up makes was last written."""
    home = Path(os.environ.get("TIDEMARK_AIRFLOW_HOME", PROJECT / ".airflow"))
    paths = (
        PROJECT / ".venv" / "installed-requirements.txt",
        PROJECT / ".venv" / "compiled.txt",
        PROJECT / ".venv" / "bin" / "tidemark",
        PROJECT / "build" / "tidemark.zip",
        home / "passwords.json",
        home / "migrated-by.txt",
    )
    return {str(path): path.stat().st_mtime_ns for path in paths}


def test_uv_gets_the_settings_of_pip() -> None:
    listed = """\
:env:.cert='/etc/ours.pem'
global.cert='/etc/theirs.pem'
global.index-url='https://mirror.invalid/simple'
global.extra-index-url='https://one.invalid/simple\\nhttps://two.invalid/simple'
global.find-links='/nowhere/at/all https://files.invalid/'
global.no-index='true'
install.timeout='60'
list.format='columns'
"""
    settings = pip_settings(listed)
    assert uv_environment(settings, {}) == {
        "UV_DEFAULT_INDEX": "https://mirror.invalid/simple",
        "UV_INDEX": "https://one.invalid/simple https://two.invalid/simple",
        "UV_FIND_LINKS": "https://files.invalid/",
        "UV_HTTP_TIMEOUT": "60",
        "SSL_CERT_FILE": "/etc/ours.pem",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_SYSTEM_CERTS": "true",
    }
    assert uv_flags(settings) == ["--no-index"]


def test_settings_of_uv_by_its_user_stay() -> None:
    settings = {"index-url": "https://mirror.invalid/simple", "proxy": "http://proxy.invalid"}
    added = uv_environment(settings, {"UV_INDEX_URL": "https://theirs.invalid", "HTTPS_PROXY": "http://theirs.invalid"})
    assert added.keys() == {"UV_INDEX_STRATEGY", "UV_SYSTEM_CERTS"}


def test_the_login_is_random_and_only_the_owner_can_read_it(tmp_path: Path) -> None:
    passwords = [make_home(tmp_path / name) for name in ("one", "two")]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in passwords]
    assert modes == [0o600, 0o600]
    one, two = (json.loads(path.read_text())["admin"] for path in passwords)
    assert len(one) >= 12
    assert one != two


def make_home(home: Path) -> Path:
    subprocess.run(
        [PROJECT / "tools" / "run", "python", "-P", PROJECT / "tools" / "local_airflow.py", "init"],
        env=os.environ | {"TIDEMARK_AIRFLOW_HOME": str(home)},
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return home / "passwords.json"

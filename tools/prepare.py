"""Prepare the project folder: .venv with the pinned packages, build/tidemark.zip, Spark's classes, the Airflow home.

Started by tools/setup with any Python 3.11+, so it imports the standard library only. Every step compares
what is there with what should be there, and does nothing if they agree.

The packages are installed by uv, which pip fetches from the same index; where that cannot be, by pip, in several times
the time. Either holds every file to the hashes of requirements.txt and requirements/*.txt.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tools"))

import build_zip  # noqa: E402 - found through the line above: `python -P` leaves the script's folder out
from pip_settings import pip_settings, uv_environment, uv_flags  # noqa: E402

VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = (PROJECT / "requirements.txt", PROJECT / "requirements" / "dev.txt")
SETUP_REQUIREMENTS = PROJECT / "requirements" / "setup.txt"
LOG = PROJECT / "build" / "setup.log"
TOOK = PROJECT / "build" / "setup.seconds"
"""How long the last set-up took; the demo tells it with its own parts."""
CLASS_ARCHIVE = PROJECT / "build" / "spark-classes.jsa"
UV_FILES = PROJECT / "build" / "uv"
MADE = VENV / "made-by-setup.txt"

# Written last, so that an interrupted set-up is simply done again.
INSTALLED = VENV / "installed-requirements.txt"
COMPILED = VENV / "compiled.txt"
KEPT_FOR = CLASS_ARCHIVE.with_suffix(".txt")
OWN_CODE = ("include", "dags", "plugins", "spark_apps")


class SetupFailed(Exception):
    """A step could not be done; the message is for the person who typed `make`."""


def say(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr, flush=True)


@contextmanager
def only_one() -> Iterator[None]:
    """Let `make demo` and `make test`, started side by side, set up one after the other."""
    lock = PROJECT / "build" / "setup.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this folder")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def timed(step: str, progress: Callable[[], str]) -> Iterator[None]:
    """Say that `step` begins, every five seconds how far it is, and how long it took."""
    began = time.monotonic()
    over = threading.Event()

    def tick() -> None:
        while not over.wait(5):
            say(f"  {progress()} {time.monotonic() - began:.0f} s")

    say(step)
    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()
    say(f"  done in {time.monotonic() - began:.0f} s")


def run(step: str, command: Iterable[object], *, packages: int = 0, environment: dict[str, str] | None = None) -> None:
    """Run `command` with its output in build/setup.log, showing how far it is; fail with the log's end."""
    seen: set[str] = set()
    tail: deque[str] = deque(maxlen=20)

    def progress() -> str:
        if not packages:
            return "..."
        return f"{len(seen)} of {packages} packages," if len(seen) < packages else "unpacking,"

    with LOG.open("a") as log, timed(step, progress):
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=PROJECT,
            env=os.environ | (environment or {}),
        )
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            tail.append(line)
            if line.startswith("Collecting "):
                seen.add(line.split("==")[0])
        if process.wait() != 0:
            end = "".join(tail)
            raise SetupFailed(f"{step}: failed with exit code {process.returncode}\n{end}(all of it: {LOG})")


def pins() -> str:
    """What must be installed, by which Python, and where (a moved .venv does not work), as one text."""
    texts = [path.read_text() for path in REQUIREMENTS]
    return "\n".join([f"# Python {sys.version}", f"# {VENV}", *texts])


def check_links() -> None:
    """Raise SetupFailed where a folder, in which files are removed, is a link to another one."""
    for folder in (PROJECT / "build", VENV):
        if folder.is_symlink():
            raise SetupFailed(
                f"{folder} is a link to {folder.readlink()}, and files in it are removed and replaced; remove the link"
            )


def _emptied() -> None:
    """Empty .venv, but for the file by which another set-up knows that this one made it, wherever it is interrupted."""
    VENV.mkdir(exist_ok=True)
    MADE.write_text("what is here may be removed by `make setup`\n")
    for path in VENV.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != MADE:
            path.unlink()


def prepare_packages() -> None:
    """A virtual environment with exactly the pinned packages, made again if its Python is gone or another."""
    if PYTHON.exists() and INSTALLED.exists() and INSTALLED.read_text() == pins():
        return
    if VENV.exists() and any(VENV.iterdir()) and not (MADE.exists() or INSTALLED.exists()):
        raise SetupFailed(f"{VENV} was not made by `make setup`, which would empty it; move it away, or remove it")
    LOG.unlink(missing_ok=True)
    INSTALLED.unlink(missing_ok=True)
    COMPILED.unlink(missing_ok=True)
    KEPT_FOR.unlink(missing_ok=True)  # an archive is of the very files whose classes it keeps
    _emptied()
    run("making .venv", [sys.executable, "-m", "venv", VENV])
    try:
        install_by_uv()
    except SetupFailed as error:
        say(f"uv cannot do it, so pip does ({str(error).splitlines()[0]})")
        install_by_pip()
    INSTALLED.write_text(pins())


PIP = (PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input")
HASHED = ("--require-hashes", *(word for path in REQUIREMENTS for word in ("-r", path)))


def install_by_uv() -> None:
    """Install the packages with uv, fetched by pip, with pip's settings. Raises SetupFailed if that cannot be."""
    run("fetching uv", [*PIP, "install", "--quiet", "--require-hashes", "-r", SETUP_REQUIREMENTS])
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    settings = pip_settings(listed)
    environment = uv_environment(settings, os.environ)
    # A cache of its own, gone afterwards: what it keeps of packages that are built here would only grow. The same for
    # its temporary files, of which it leaves some.
    (UV_FILES / "tmp").mkdir(parents=True, exist_ok=True)
    environment |= {"TMPDIR": str(UV_FILES / "tmp")}
    environment |= {} if "UV_CACHE_DIR" in os.environ else {"UV_CACHE_DIR": str(UV_FILES / "cache")}
    command = [VENV / "bin" / "uv", "pip", "install", "--python", PYTHON, *uv_flags(settings), *HASHED]
    try:
        run(f"installing {wanted()} packages into .venv (a minute)", command, environment=environment)
    finally:
        shutil.rmtree(UV_FILES, ignore_errors=True)


def install_by_pip() -> None:
    run(
        f"installing {wanted()} packages into .venv (one to four minutes)",
        [*PIP, "install", "--progress-bar", "off", *HASHED],
        packages=wanted(),
    )


def wanted() -> int:
    """How many packages the pins are: without the second of two pins for other Pythons, and what Windows needs."""
    names = (re.match(r"[\w.-]+(?===)", line) for line in pins().splitlines() if "win32" not in line)
    return len({name[0] for name in names if name})


def site_packages() -> Path:
    """Where the packages of .venv are."""
    [found] = VENV.glob("lib/python3*/site-packages")
    return found


def prepare_byte_code() -> None:
    """Byte code of the installed packages, once, and of the sources that have none yet or changed since."""
    compiler = PROJECT / "tools" / "byte_code.py"
    if not COMPILED.exists():
        run("compiling the packages in .venv", [PYTHON, "-P", compiler, site_packages()])
        COMPILED.write_text("")
    subprocess.run([PYTHON, "-P", compiler, *(PROJECT / name for name in OWN_CODE)], check=False)


def prepare_entry_points() -> None:
    """`import tidemark` and the command `tidemark` work in .venv, straight from the sources."""
    write_if_changed(site_packages() / "tidemark.pth", f"{PROJECT / 'include'}\n")
    command = VENV / "bin" / "tidemark"
    start = "import sys; from tidemark.cli import app; sys.argv[0] = 'tidemark'; app()"
    write_if_changed(command, f'#!/bin/sh\nexec {shlex.quote(str(PYTHON))} -P -c "{start}" "$@"\n')
    command.chmod(0o755)


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def prepare_class_archive() -> None:
    """Spark's classes in one file, made again for other packages or another Java. Spark starts without it, too."""
    home = os.environ.get("JAVA_HOME")  # where Spark looks first
    java = Path(home, "bin", "java") if home else "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    wanted = hashlib.sha256(f"{pins()}\n{version}".encode()).hexdigest()
    if KEPT_FOR.exists() and KEPT_FOR.read_text() == wanted:
        return
    CLASS_ARCHIVE.unlink(missing_ok=True)
    command = [PYTHON, "-P", PROJECT / "tools" / "class_archive.py", CLASS_ARCHIVE]
    try:
        run("keeping the classes of Spark, which starts faster with them (half a minute)", command)
    except SetupFailed as error:
        say(f"Spark starts as it does without its classes kept ({str(error).splitlines()[0]})")
    KEPT_FOR.write_text(wanted)


def prepare_airflow() -> None:
    """A migrated Airflow database and a login, both under AIRFLOW_HOME."""
    home = Path(os.environ["AIRFLOW_HOME"])
    migrated = home / "migrated-by.txt"
    wanted = next(line.split()[0] for line in pins().splitlines() if line.startswith("apache-airflow-core=="))
    if migrated.exists() and migrated.read_text() == wanted and (home / "postgres" / "PG_VERSION").exists():
        return
    run("making the Airflow home", [PYTHON, PROJECT / "tools" / "local_airflow.py", "init"])
    migrated.write_text(wanted)


def main() -> int:
    began = time.monotonic()
    try:
        check_links()
        with only_one():
            prepare_packages()
            prepare_entry_points()
            prepare_byte_code()
            if build_zip.build():
                say("build/tidemark.zip written")
            prepare_class_archive()
            prepare_airflow()
    except SetupFailed as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("interrupted; run it again to go on")
        return 130
    took = time.monotonic() - began
    TOOK.write_text(f"{took:.1f}\n")
    if took > 5:
        say(f"ready after {took:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

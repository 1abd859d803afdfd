"""Make a release: build it, try it where nothing else of this folder is, and tag it.

    make release            of the version in CHANGELOG.md
    make release TRY=1      build and try what is there, tag nothing

The notes and the version are commits made before: `## [0.6.0] - 2026-11-29` in CHANGELOG.md and "0.6.0" in
include/tidemark/__init__.py. What is tried is the wheel, installed with Airflow into an environment of its own: Airflow
finds the plugin by its entry point, and a small collection goes through its DAG and is asked for in SQL.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
BUILD = PROJECT / "build" / "release"
DISTRIBUTION = PROJECT / "dist"
EXTRAS = "airflow,quality,sql"

COLLECTION = """\
name: sales
key: [sale]
value: [amount]
columns: {sale: int, amount: "decimal(9, 2)"}
start: 2024-01-01
end: 2024-01-03
time: arrival
source: {path: "{{ landing }}/sales/{{ ds }}.csv", format: csv, envelope: append}
"""
DAGS = "from tidemark.airflow import collection_dags\n\nglobals().update(collection_dags())\n"
DAYS = {"2024-01-01": "sale,amount\n1,2.50\n2,4.00\n", "2024-01-02": "sale,amount\n3,1.25\n"}
QUESTION = "SELECT count(*) AS n, sum(amount) AS total FROM sales"
ANSWER = "n,total\n3,7.75\n"


class Refused(Exception):
    """The release cannot be made as things are; the message says why and what to do."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Build a release, try it, and tag it.")
    parser.add_argument("--try", dest="only_try", action="store_true", help="tag nothing, whatever the version is")
    options = parser.parse_args(argv)
    try:
        version = declared_version()
        if not options.only_try:
            check_ready(version)
        wheel = build(version)
        environment = install(wheel)
        try_out(environment, version)
        if not options.only_try:
            run("git", "tag", "--annotate", f"v{version}", "--message", f"Tidemark {version}\n\n{notes(version)}")
    except (Refused, subprocess.CalledProcessError) as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    done = "tried" if options.only_try else f"tagged v{version}; push it with: git push origin v{version}"
    print(f"{wheel.name}: {done}", file=sys.stderr)
    return 0


def declared_version() -> str:
    text = (PROJECT / "include" / "tidemark" / "__init__.py").read_text(encoding="utf-8")
    [version] = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


def check_ready(version: str) -> None:
    """Refuse what is not committed, has no notes, or was released before."""
    if run("git", "status", "--porcelain"):
        raise Refused("there are changes that are not committed: commit or stash them")
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Refused(f"the version is {version}: write that of the release in include/tidemark/__init__.py")
    notes(version)
    if run("git", "tag", "--list", f"v{version}"):
        raise Refused(f"v{version} is tagged already: a release is never made twice")


def notes(version: str) -> str:
    """Find the notes of a release in CHANGELOG.md.

    Raises:
        Refused: The newest notes are those of another version, or have no date.
    """
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    heading, _, body = newest.partition("\n")
    if not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", heading):
        raise Refused(f"CHANGELOG.md begins with {heading!r}, and the version is {version}: name and date its notes")
    return body.strip()


def build(version: str) -> Path:
    """Build sdist and wheel from what is committed, the wheel from the sdist.

    Returns:
        The wheel, in `dist`.
    """
    shutil.rmtree(BUILD, ignore_errors=True)
    source = BUILD / "source"
    source.mkdir(parents=True)
    archive = BUILD / "source.tar"
    run("git", "archive", "--output", str(archive), "HEAD", "pyproject.toml", "README.md", "LICENSE", "include")
    with tarfile.open(archive) as files:
        files.extractall(source, filter="data")
    backend = "import setuptools.build_meta as b, sys; print(getattr(b, sys.argv[1])(sys.argv[2]))"
    DISTRIBUTION.mkdir(exist_ok=True)
    run(sys.executable, "-c", backend, "build_sdist", str(DISTRIBUTION), at=source)
    with tarfile.open(DISTRIBUTION / f"tidemark-{version}.tar.gz") as files:
        files.extractall(BUILD, filter="data")
    run(sys.executable, "-c", backend, "build_wheel", str(DISTRIBUTION), at=BUILD / f"tidemark-{version}")
    [wheel] = DISTRIBUTION.glob(f"tidemark-{version}-*.whl")
    return wheel


def install(wheel: Path) -> Path:
    """Install the wheel with Airflow into a new environment, at the pinned versions.

    Returns:
        The environment's folder of commands.
    """
    say("installing the wheel with Airflow into an environment of its own (minutes)")
    home = BUILD / "environment"
    venv.create(home, with_pip=True)
    pins = BUILD / "pins.txt"
    pins.write_text(re.sub(r" *\\\n +--hash=\S+", "", (PROJECT / "requirements.txt").read_text(encoding="utf-8")))
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--constraint", str(pins), f"tidemark[{EXTRAS}] @ {wheel.as_uri()}")
    return home / "bin"


def try_out(commands: Path, version: str) -> None:
    """Run a small collection through Airflow there, and ask for it.

    Raises:
        Refused: The plugin is not found, or the answer is another.
    """
    say("a small collection through its DAG")
    home = BUILD / "home"
    for name, text in {"collections/sales.yaml": COLLECTION, "dags/tidemark_dags.py": DAGS}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    for day, text in DAYS.items():
        (home / "landing" / "sales").mkdir(parents=True, exist_ok=True)
        (home / "landing" / "sales" / f"{day}.csv").write_text(text, encoding="utf-8")
    environment = {
        "HOME": str(home),
        "PATH": f"{commands}:{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "TIDEMARK_COLLECTIONS": str(home / "collections"),
        "TIDEMARK_ROOT": str(home / "root"),
        "TIDEMARK_LANDING": str(home / "landing"),
        "TIDEMARK_SPARK_WHEN": "auto",
    }

    def there(*command: str) -> str:
        return run(str(commands / command[0]), *command[1:], at=home, environment=environment)

    there("airflow", "db", "migrate")
    if version not in (printed := there("tidemark", "--version")):
        raise Refused(f"tidemark --version prints {printed.strip()!r}, and this is {version}")
    if "tidemark" not in (printed := there("airflow", "plugins", "--output", "plain")):
        raise Refused(f"Airflow did not find the plugin by its entry point, but:\n{printed}")
    for day in DAYS:
        there("airflow", "dags", "test", "sales", day)
    answered = there("tidemark", "sql", QUESTION, "--root", str(home / "root"), "--format", "csv")
    if answered.replace("\r", "") != ANSWER:
        raise Refused(f"{QUESTION} answers {answered!r}, and {ANSWER!r} was landed")


def run(*command: str, at: Path = PROJECT, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(
            f"{' '.join(command[:6])} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

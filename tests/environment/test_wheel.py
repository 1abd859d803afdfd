"""What `pip install tidemark` gives: the wheel is built and tried where nothing but its base dependencies is installed.

Nothing is fetched: the clean environment links the files of those packages from the one that runs the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[2]
V1 = PROJECT / "tests" / "compat" / "v1"
EXTRAS = ("airflow", "spark", "quality", "s3", "plot", "sql", "iceberg", "delta")
LEFT_OUT = ("airflow", "boto3", "deltalake", "duckdb", "great_expectations", "pandas", "polars", "pyiceberg", "pyspark")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the files under version control as they are now."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    shutil.copytree(PROJECT / "include", source / "include", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    words = ["wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source]
    pip(*words)
    [built] = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that has the wheel and its base dependencies."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=False)
    [site] = home.glob("lib/python3*/site-packages")
    pip("install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel)
    for package in closure(base(wheel)):
        link(package, site)
    return home / "bin" / "python"


def pip(*words: object) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def base(wheel: Path) -> list[Requirement]:
    """What the wheel says it needs without any extra."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(name).decode()
    stated = [line.removeprefix("Requires-Dist: ") for line in text.splitlines() if line.startswith("Requires-Dist: ")]
    return [need for need in map(Requirement, stated) if need.marker is None or need.marker.evaluate({"extra": ""})]


def closure(needs: list[Requirement]) -> set[str]:
    """The installed packages that these need, and all that those need in turn. An installed one must satisfy them."""
    found: set[str] = set()
    waiting = list(needs)
    while waiting:
        need = waiting.pop()
        assert need.specifier.contains(metadata.version(need.name), prereleases=True), need
        extras = ["", *need.extras]
        name = canonicalize_name(need.name)
        for inner in map(Requirement, metadata.requires(name) or []):
            applies = inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras)
            if applies and canonicalize_name(inner.name) not in found:
                waiting.append(inner)
        found.add(name)
    return found


def link(package: str, site: Path) -> None:
    """Link an installed package's folders and modules into another environment."""
    installed = metadata.distribution(package)
    inside = {file.parts[0] for file in installed.files or () if ".." not in file.parts}
    for top in inside - {"__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(installed.locate_file(top))))


def said(python: Path, script: str, *words: object) -> str:
    """What a script prints there, in isolated mode: no PYTHONPATH, and nothing of this folder."""
    command = [python, "-I", "-c", script, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        yield from archive.namelist()


def test_the_wheel_holds_the_package_its_types_and_the_licence_and_nothing_else(wheel: Path) -> None:
    contained = [name for name in names(wheel) if ".dist-info/" not in name]
    sources = PROJECT / "include"
    kinds = [path for kind in ("py", "js") for path in sources.glob(f"tidemark/**/*.{kind}")]
    wanted = {path.relative_to(sources).as_posix() for path in kinds}
    assert "tidemark/airflow/web/start.js" in wanted
    assert set(contained) == wanted | {"tidemark/py.typed", "pyspark_tidemark.py"}
    assert [name for name in names(wheel) if name.endswith("/licenses/LICENSE")]


def test_the_clean_environment_has_none_of_the_extras_packages(clean: Path) -> None:
    script = "import importlib.util as u, json, sys; print(json.dumps([n for n in sys.argv[1:] if u.find_spec(n)]))"
    assert json.loads(said(clean, script, *LEFT_OUT)) == []


READ = """
import json, sys
import tidemark

opened = tidemark.open(sys.argv[1], sys.argv[2])
found = [opened.name, opened.status().seal, opened.as_of().count(), opened.changes(after=opened.status().since).count()]
print(json.dumps([*found, len(opened.history(limit=3))]))
"""


@pytest.fixture(scope="module")
def upserted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one collection of format 1, called `tides` as it calls itself."""
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(V1 / "upserted", root / "tides")
    return root


def test_a_collection_of_format_1_is_read_with_the_base_alone(clean: Path, upserted: Path) -> None:
    here = [json.loads(said(Path(python), READ, upserted, "tides")) for python in (clean, sys.executable)]
    assert here[0] == here[1]
    assert here[0][2] > 0 < here[0][3]


def test_the_command_reads_with_the_base_alone(clean: Path, upserted: Path) -> None:
    script = "import sys; from tidemark.cli import app; sys.argv[0] = 'tidemark'; app()"
    assert "tides" in said(clean, script, "status", "tides", "--root", upserted)
    assert said(clean, script, "as-of", "tides", "--root", upserted).strip()


@pytest.mark.parametrize(
    ("script", "package", "extra"),
    [
        ("from tidemark.storage import open_store; open_store('s3://bucket/prefix')", "boto3", "s3"),
        ("import tidemark; tidemark.open('s3://bucket/prefix', 'tides')", "boto3", "s3"),
        ("import tidemark.spark.read", "pyspark", "spark"),
        ("from tidemark.airflow import AppOperator", "airflow", "airflow"),
        ("import tidemark.quality.evaluate", "great_expectations", "quality"),
    ],
)
def test_what_an_extra_lacks_is_said_in_one_line(clean: Path, script: str, package: str, extra: str) -> None:
    done = subprocess.run([clean, "-I", "-c", script], capture_output=True, text=True, check=False, cwd="/")
    printed = done.stderr.strip().splitlines()[-1]
    assert printed.endswith(
        f"MissingExtra: {package} is not installed: pip install '.[{extra}]' (in a checkout of Tidemark)"
    )


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("to_spark(None)", "pyspark is not installed: pip install '.[spark]' (in a checkout of Tidemark)"),
        ("to_pandas()", "pandas is not installed: pip install pandas"),
        ("to_polars()", "polars is not installed: pip install polars"),
    ],
)
def test_a_shape_that_needs_more_says_what(clean: Path, upserted: Path, shape: str, message: str) -> None:
    script = f"import sys, tidemark; tidemark.open(sys.argv[1], 'tides').as_of().{shape}"
    command = [clean, "-I", "-c", script, str(upserted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stderr.strip().splitlines()[-1].endswith(f"MissingExtra: {message}")


def test_the_extra_all_is_every_other_extra() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) == {*EXTRAS, "all"}
    assert extras["all"] == [f"tidemark[{','.join(EXTRAS)}]"]


def test_the_bounds_of_the_base_are_what_is_tried_with_the_oldest() -> None:
    """`make test-oldest` runs with requirements/oldest.txt."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    lines = (PROJECT / "requirements" / "oldest.txt").read_text().splitlines()
    tried = {line.split("#")[0].strip().replace("==", ">=") for line in lines if line[0] != "#"}
    assert {str(Requirement(need)).lower() for need in project["dependencies"]} == tried

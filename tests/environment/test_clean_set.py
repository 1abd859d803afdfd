"""What set-up installed: the pins, each checked by its hashes, nothing broken, one Spark and not two."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[2]
COMPILED = ("requirements.txt", "requirements/dev.txt")
ALL_COMPILED = (*COMPILED, *(f"requirements/{group}.txt" for group in ("setup", "bench", "duckdb-iceberg")))
OLDEST = "requirements/oldest.txt"


def stated(name: str) -> Iterator[str]:
    """The statements of one compiled file: a pin with its hashes each, comments left out."""
    lines = (re.sub(r"(^|\s)#.*", "", line) for line in (PROJECT / name).read_text().splitlines())
    yield from filter(None, (line.strip() for line in "\n".join(lines).replace("\\\n", " ").splitlines()))


def pins(name: str) -> Iterator[Requirement]:
    """The pins of one compiled file that apply to this Python on this system."""
    for statement in stated(name):
        requirement = Requirement(statement.split("--hash=")[0])
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement


@pytest.mark.parametrize("name", ALL_COMPILED)
def test_every_pin_carries_the_hashes_of_what_may_be_installed(name: str) -> None:
    bare = [statement for statement in stated(name) if not re.search(r" --hash=sha256:[0-9a-f]{64}( |$)", statement)]
    assert list(stated(name))
    assert bare == []


@pytest.mark.parametrize("name", ALL_COMPILED)
def test_every_line_pins_one_version(name: str) -> None:
    loose = [str(pin) for pin in pins(name) if not re.fullmatch(r"==[^*,]+", str(pin.specifier))]
    assert loose == []


@pytest.mark.parametrize("name", COMPILED)
def test_installed_versions_are_the_pinned_ones(name: str) -> None:
    wanted = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins(name)}
    installed = {canonicalize_name(d.metadata["Name"]): d.version for d in metadata.distributions()}
    assert len(wanted) > 80, f"{name} lists only {len(wanted)} packages, so its pins are not transitive"
    assert {package: installed.get(package) for package in wanted} == wanted


def declared() -> dict[str, list[str]]:
    """What each compiled file is compiled from, as pyproject.toml has it."""
    text = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    project, groups = text["project"], text["dependency-groups"]
    extras = (need for name, needs in project["optional-dependencies"].items() if name != "all" for need in needs)
    product = [*project["dependencies"], *extras, *groups.pop("local-airflow")]
    return {"requirements.txt": product} | {f"requirements/{group}.txt": needs for group, needs in groups.items()}


@pytest.mark.parametrize("name", ALL_COMPILED)
def test_direct_dependencies_are_among_the_pins(name: str) -> None:
    direct = [Requirement(need) for need in declared()[name]]
    pinned = [Requirement(statement.split("--hash=")[0]) for statement in stated(name)]
    versions = {(canonicalize_name(pin.name), str(pin.specifier).removeprefix("==")) for pin in pinned}
    for need in direct:
        assert any(
            name == canonicalize_name(need.name) and need.specifier.contains(version) for name, version in versions
        ), need


def test_every_group_has_one_compiled_file_and_every_file_a_group() -> None:
    files = {path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("requirements*/*.txt")}
    files |= {path.name for path in PROJECT.glob("requirements*.*")}
    assert files == {*declared(), OLDEST}
    assert set(declared()) == set(ALL_COMPILED)


def test_both_files_agree() -> None:
    product, development = ({pin.name: str(pin.specifier) for pin in pins(name)} for name in COMPILED)
    shared = product.keys() & development.keys()
    assert {name: product[name] for name in shared} == {name: development[name] for name in shared}


@pytest.mark.parametrize("name", [*ALL_COMPILED, OLDEST])
def test_no_index_is_named(name: str) -> None:
    text = (PROJECT / name).read_text()
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host|(^|\s)-[if]\s", text)


def test_pip_finds_nothing_broken() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "No broken requirements found.")


def test_the_two_packages_that_own_pyspark_hold_the_same_bytes() -> None:
    # Unequal ones make a broken mix that pip does not notice: the last installed wins, file by file.
    full, client = recorded("pyspark"), recorded("pyspark-client")
    shared = {path for path in full.keys() & client.keys() if path.startswith("pyspark/")}
    assert len(shared) > 300
    assert {path: full[path] for path in shared} == {path: client[path] for path in shared}


def test_the_files_of_pyspark_are_those_that_were_recorded() -> None:
    site = Path(str(metadata.distribution("pyspark").locate_file("")))
    python = [file for file in metadata.distribution("pyspark").files or () if file.suffix == ".py"]
    sizes = {str(file): file.size for file in python if str(file).startswith("pyspark/")}
    assert len(sizes) > 300
    assert {path: (site / path).stat().st_size for path in sizes} == sizes


def test_pyspark_says_the_version_that_is_pinned() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import pyspark; print(pyspark.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert {said, metadata.version("pyspark"), metadata.version("pyspark-client")} == {said}


def recorded(package: str) -> dict[str, str]:
    """The hashes of the files that `package` installed, from its RECORD."""
    files = metadata.distribution(package).files or ()
    return {str(file): file.hash.value for file in files if file.hash is not None}

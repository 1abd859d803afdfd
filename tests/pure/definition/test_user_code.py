"""Definitions in Python come from one folder, whatever else is called so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from tidemark.errors import InvalidUsage
from tidemark.model.derived import Definition
from tidemark.resident.server_folder import PACKAGE
from tidemark.spark.derive import user_code

pytestmark = pytest.mark.pure
KINDS = Definition(function="kinds:where", version="1")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == user_code.FOLDER]:
        del sys.modules[name]


def folder(at: Path, **files: str) -> Path:
    at.mkdir(parents=True)
    for name, text in files.items():
        (at / f"{name}.py").write_text(text)
    return at


def test_it_is_beside_the_package_unless_another_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert user_code.place() == str(PACKAGE.parent / "definitions")
    with pytest.raises(InvalidUsage, match=f"there is no {PACKAGE.parent}/definitions/kinds.py; TIDEMARK_DEFINITIONS"):
        user_code.file_of("d", KINDS)
    monkeypatch.setenv("TIDEMARK_DEFINITIONS", str(tmp_path))
    assert user_code.place() == str(tmp_path)


@pytest.mark.parametrize("init", [{}, {"__init__": "shared = 7"}], ids=["without __init__", "with it"])
@pytest.mark.parametrize("called", ["definitions", "mine"])
def test_what_comes_first_on_the_path_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str, init: dict[str, str]
) -> None:
    """Nor is anything of it: a module that the folder lacks is not there."""
    other = folder(tmp_path / "first" / "definitions", kinds="where = 'other'", more="", __init__="")
    own = folder(tmp_path / called, kinds="from definitions.helper import where", helper="where = 'own'", **init)
    monkeypatch.syspath_prepend(str(other.parent))
    monkeypatch.setenv("TIDEMARK_DEFINITIONS", str(own))
    found = user_code.module_of("d", KINDS)
    assert (found.where, found.__file__) == ("own", str(own / "kinds.py"))
    assert user_code.file_of("d", KINDS) == str(own / "kinds.py")
    assert getattr(user_code.package(), "shared", 7) == 7
    with pytest.raises(InvalidUsage, match=r"there is no .*/more.py"):
        user_code.module_of("d", Definition(function="more:f", version="1"))
    with pytest.raises(ModuleNotFoundError):
        __import__("definitions.more")


def test_another_folder_named_later_is_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        monkeypatch.setenv("TIDEMARK_DEFINITIONS", str(folder(tmp_path / name, kinds=f"where = '{name}'")))
        assert user_code.module_of("d", KINDS).where == name
        assert user_code.module_of("d", KINDS) is user_code.module_of("d", KINDS)


def test_another_package_of_that_name_is_refused_with_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_DEFINITIONS", str(folder(tmp_path / "own", kinds="")))
    foreign = ModuleType("definitions")
    foreign.__file__ = "/elsewhere/definitions/__init__.py"
    monkeypatch.setitem(sys.modules, "definitions", foreign)
    with pytest.raises(InvalidUsage, match=r"are in .*/own, and another package definitions .* from /elsewhere/"):
        user_code.module_of("d", KINDS)


def test_it_may_be_in_the_zip_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zipped = tmp_path / "tidemark.zip"
    with ZipFile(zipped, "w") as archive:
        archive.writestr("tidemark/__init__.py", "")
        archive.writestr("definitions/kinds.py", "where = 'zipped'")
        archive.writestr("definitions/deep/__init__.py", "")
        archive.writestr("definitions/deep/more.py", "where = 'deep'")
    monkeypatch.setattr(user_code, "PACKAGE", zipped / "tidemark")
    assert user_code.module_of("d", KINDS).where == "zipped"
    deep = Definition(function="deep.more:f", version="1")
    assert user_code.file_of("d", deep) == str(zipped / "definitions" / "deep" / "more.py")
    assert user_code.module_of("d", deep).where == "deep"

"""One DAG file makes a collection's DAG: the project's factory, or one of the user's, and never both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import ORDERS, parsed

FACTORY = "from tidemark.airflow import collection_dags  # airflow dag\nglobals().update(collection_dags(%s))\n"
OWN = "from tidemark.airflow import tidemark_dag  # airflow dag\nmine = tidemark_dag(%s)\n"


@pytest.fixture
def dags(collections: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DAGs folder with a factory in it."""
    folder = collections.parent / "dags"
    folder.mkdir()
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(folder))
    (folder / "factory.py").write_text(FACTORY % "")
    return folder


def made(file: Path) -> Any:
    """What Airflow's processor finds in one file, which it parses by itself."""
    return parsed(file)


def test_two_makers_of_one_dag_are_an_import_error_that_names_both(dags: Path, collections: Path) -> None:
    own = dags / "team" / "own.py"
    own.parent.mkdir()
    own.write_text(OWN % repr(str(collections / "orders.yaml")))
    bag = made(own)
    assert bag.dags == {}
    (error,) = bag.import_errors.values()
    for named in (own, dags / "factory.py", collections / "orders.yaml", "dag: own", "exclude=['orders']"):
        assert str(named) in error
    assert (set(made(dags / "factory.py").dags), made(dags / "factory.py").import_errors) == ({"orders"}, {})


def test_a_file_or_the_factory_leaves_a_collection_to_its_user(dags: Path, collections: Path) -> None:
    own = dags / "own.py"
    own.write_text(OWN % repr(str(collections / "orders.yaml")))
    (dags / "factory.py").write_text(FACTORY % "exclude=['orders']")
    assert (set(made(own).dags), set(made(dags / "factory.py").dags)) == ({"orders"}, set())
    (dags / "factory.py").write_text(FACTORY % "")
    (collections / "orders.yaml").write_text(ORDERS + "dag: own\n")
    assert (set(made(own).dags), set(made(dags / "factory.py").dags)) == ({"orders"}, set())
    assert set(parsed().dags) == {"tidemark_maintenance"}, "it is looked after all the same"


def test_another_id_or_no_factory_is_no_conflict(dags: Path, collections: Path) -> None:
    own = dags / "own.py"
    own.write_text(OWN % f"{str(collections / 'orders.yaml')!r}, dag_id='orders_by_hand'")
    assert set(made(own).dags) == {"orders_by_hand"}
    own.write_text(OWN % repr(str(collections / "orders.yaml")))
    (dags / "factory.py").write_text(FACTORY % repr(str(collections / "none")))
    assert set(made(own).dags) == {"orders"}
    (dags / "factory.py").unlink()
    assert set(made(own).dags) == {"orders"}


@pytest.mark.parametrize("content", ["collection_dags(", "collection_dags(*[])\n" + "(" * 500, "\0 collection_dags"])
def test_a_file_that_is_no_python_is_no_factory(dags: Path, collections: Path, content: str) -> None:
    (dags / "factory.py").write_text(f"# airflow dag\n{content}")
    own = dags / "own.py"
    own.write_text(OWN % repr(str(collections / "orders.yaml")))
    assert set(made(own).dags) == {"orders"}


def test_the_same_name_from_elsewhere_is_the_same_dag(dags: Path, collections: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "orders.yaml"
    elsewhere.write_text(ORDERS)
    (collections / "broken.yaml").write_text("name: orders\nname: orders")
    own = dags / "own.py"
    own.write_text(OWN % repr(str(elsewhere)))
    (error,) = made(own).import_errors.values()
    assert str(collections / "orders.yaml") in error


def test_a_factory_and_a_call_in_one_file_are_two_makers_too(dags: Path, collections: Path) -> None:
    both = dags / "factory.py"
    both.write_text(FACTORY % "" + OWN % repr(str(collections / "orders.yaml")))
    (error,) = made(both).import_errors.values()
    assert f"{both} makes the DAG orders, and {both} makes it too" in error

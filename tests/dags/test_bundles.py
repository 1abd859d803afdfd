"""A bundle of DAGs brings its own collection files: a run of an older version is of that version's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dags.support import ORDERS, parsed
from tests.support.shipped import copy_dags
from tidemark.airflow import collection_dags, tidemark_dag
from tidemark.airflow.parsing import collections_folder


def bundle(folder: Path, text: str) -> Path:
    """A checkout of the project's DAG files, and one collection file; its DAGs folder."""
    (folder / "include" / "collections").mkdir(parents=True)
    (folder / "include" / "collections" / "orders.yaml").write_text(text)
    return copy_dags(folder)


@pytest.fixture
def versions(tmp_path: Path, locations: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two versions as a bundle checks them out, and a deployment of the newer one."""
    newer = ORDERS.replace("end: 2024-01-04", "end: 2024-02-01") + "airflow: {tags: [newer]}\n"
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    bundle(tmp_path / "home", newer)
    older = ORDERS.replace("[open, paid]", "[open]") + "airflow: {tags: [older]}\n"
    return {"older": bundle(tmp_path / "a1b2c3", older), "newer": bundle(tmp_path / "d4e5f6", newer)}


@pytest.mark.parametrize("task_of", [None, "orders"])
def test_each_version_has_the_dags_of_its_own_files(
    versions: dict[str, Path], monkeypatch: pytest.MonkeyPatch, task_of: str | None
) -> None:
    if task_of:  # as it is set in the process of a task
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", task_of)
    for version, folder in versions.items():
        bag: Any = parsed(folder)
        assert bag.import_errors == {}
        dag = bag.dags["orders"]
        assert version in dag.tags
        file = folder.parent / "include" / "collections" / "orders.yaml"
        assert dag.get_task("ingest").app_args[-1] == str(file), "what its steps declare is that version's, too"


def test_wrong_files_and_second_makers_are_those_of_the_version(versions: dict[str, Path]) -> None:
    older = versions["older"]
    (older.parent / "include" / "collections" / "wrong.yaml").write_text("name: 1")
    (older / "own.py").write_text(
        "from pathlib import Path\nfrom tidemark.airflow import tidemark_dag  # airflow dag\n"
        "mine = tidemark_dag(Path(__file__).parents[1] / 'include/collections/orders.yaml')\n"
    )
    errors = "".join(parsed(older).import_errors.values())
    assert str(older.parent / "include" / "collections" / "wrong.yaml") in errors
    assert f"makes it too, from {older.parent / 'include' / 'collections' / 'orders.yaml'}" in errors
    assert parsed(versions["newer"]).import_errors == {}


def test_a_folder_that_is_named_goes_before_and_the_project_is_what_is_left(
    versions: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = versions["older"] / "team" / "europe" / "orders.py"
    assert collections_folder(file=file) == versions["older"].parent / "include" / "collections"
    assert collections_folder(file=tmp_path / "elsewhere" / "dag.py") == tmp_path / "home" / "include" / "collections"
    assert collections_folder() == tmp_path / "home" / "include" / "collections"
    assert set(collection_dags()) == {"orders"}
    monkeypatch.setenv("TIDEMARK_COLLECTIONS", str(tmp_path))
    assert collections_folder(file=file) == tmp_path
    assert collections_folder(versions["newer"], file=file) == versions["newer"]


def test_a_run_that_is_cleared_is_of_todays_declaration_unless_its_owner_says_otherwise(collections: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    file = collections / "orders.yaml"
    again = DagSerialization.from_dict(DagSerialization.to_dict(tidemark_dag(file)))
    assert again.rerun_with_latest_version is True
    assert tidemark_dag(file, rerun_with_latest_version=False).rerun_with_latest_version is False

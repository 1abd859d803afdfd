"""A task's process parses the one collection file that its DAG is made of, however many there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.dags.support import ORDERS
from tidemark.airflow import collection_dags
from tidemark.config import document

MANY = 40


@pytest.fixture
def parsed(collections: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the collection files whose YAML was parsed, beside many others."""
    for number in range(MANY):
        (collections / f"a{number}.yaml").write_text(ORDERS.replace("name: orders", f"name: orders_{number}"))
    (collections / "z.yaml").write_text("name: totals\nfrom: orders\nselect: SELECT id FROM orders\nkey: [id]\n")
    found: list[str] = []
    read = document.read

    def counted(file: str | Path) -> document.Document:
        found.append(Path(file).name)
        return read(file)

    monkeypatch.setattr(document, "read", counted)
    return found


def asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", name)
    return set(collection_dags())


@pytest.mark.parametrize(("name", "file"), [("orders", "orders.yaml"), ("orders_7", "a7.yaml"), ("totals", "z.yaml")])
def test_one_file_is_parsed(parsed: list[str], monkeypatch: pytest.MonkeyPatch, name: str, file: str) -> None:
    assert asked_for(name, monkeypatch) == {name}
    assert parsed == [file]


@pytest.mark.parametrize("said", ["name:   orders_x   # ours", '"name": "orders_x"', "name: 'orders_x'"])
def test_a_name_is_found_as_yaml_mostly_writes_it(
    parsed: list[str], collections: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    (collections / "x.yaml").write_text(ORDERS.replace("name: orders", said))
    assert asked_for("orders_x", monkeypatch) == {"orders_x"}
    assert parsed == ["x.yaml"]


def test_a_name_that_is_written_otherwise_is_found_among_all(
    parsed: list[str], collections: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (collections / "x.yaml").write_text(ORDERS.replace("name: orders", 'name: "orders\\u005fx"'))
    assert asked_for("orders_x", monkeypatch) == {"orders_x"}
    assert len(set(parsed)) == MANY + 3


def test_a_wrong_file_that_says_the_name_stands_in_nobodys_way(
    parsed: list[str], collections: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(collections / "00.yaml")  # which nobody writes to
    (collections / "0.yaml").write_text("name: orders\nkey: [")
    assert asked_for("orders", monkeypatch) == {"orders"}
    assert parsed == ["0.yaml", "orders.yaml"]

"""Answers and collections as people meet them: what they say of themselves, in text and in a notebook, and their
first rows; and how other libraries take them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import tidemark
from simulation.sea import Sea
from simulation.test_sql import row
from tidemark.api.opened import OpenCollection
from tidemark.errors import MissingExtra
from tidemark.model.collection import Column, ColumnType, Envelope

pytestmark = pytest.mark.simulation


@pytest.fixture
def tides(tmp_path: Path) -> OpenCollection:
    made = Sea(tmp_path, root=tmp_path / "root")
    made.landed("tides", envelope=Envelope.UPSERT)
    made.ingest("tides", 0, ("a", [row(at, "<b>low</b>", 1) for at in range(20)]))
    made.ingest("tides", 1, ("b", [row(2, "high", 12), row(3, "", 13, gone=True)]))
    return tidemark.open(tmp_path / "root", "tides")


def test_an_answer_says_its_version_and_up_to_where_it_is_complete(tides: OpenCollection) -> None:
    answer = tides.as_of(9)
    assert (answer.version, answer.complete_below) == (tides.version, 20)
    assert repr(answer).startswith("<tides as known at 1970-01-01T00:00:00.000009Z; version")
    assert "complete below 1970-01-01T00:00:00.000020Z; columns k, v, _multiplicity; not read yet>" in repr(answer)


def test_an_answer_of_a_time_says_what_was_corrected_since(tides: OpenCollection) -> None:
    found = tides.as_of(9, where="k < 4").corrections().to_arrow().select(["k", "v", "diff"]).to_pylist()
    found_rows = {(each["k"], each["v"], each["diff"]) for each in found}
    assert found_rows == {(2, "<b>low</b>", -1), (2, "high", 1), (3, "<b>low</b>", -1)}
    assert tides.as_of(9, where="k > 5").corrections().count() == 0
    assert tides.as_of().corrections().count() == 0


def test_the_first_rows(tides: OpenCollection) -> None:
    assert tides.head(3).to_pylist() == [
        {"k": 0, "v": "<b>low</b>"},
        {"k": 1, "v": "<b>low</b>"},
        {"k": 2, "v": "high"},
    ]
    assert tides.as_of(9).head(1)["_multiplicity"].to_pylist() == [1]
    assert tides.head(0).num_rows == 0
    assert tides.head(1_000).num_rows == 19


def test_a_notebook_shows_text_as_text(tides: OpenCollection) -> None:
    collection, answer = tides._repr_html_(), tides.as_of()._repr_html_()
    assert "<b>tides</b>, version" in collection
    for shown in ("<td>k</td><td>int</td><td>key</td>", "complete below", "last change", "<td>updates</td><td>"):
        assert shown in collection
    assert "<td>&lt;b&gt;low&lt;/b&gt;</td>" in answer
    assert "<b>low" not in answer
    assert answer.count("<tr>") == 11
    assert "and more rows" in answer
    assert "&lt;b&gt;" in tidemark.sql(tides.root, "SELECT v FROM tides")._repr_html_()


def test_a_notebook_shows_some_of_many_columns_and_of_long_texts(tmp_path: Path) -> None:
    made = Sea(tmp_path, root=tmp_path / "root")
    made.landed("wide", value=tuple(Column(f"c{at}", ColumnType.STRING) for at in range(60)))
    columns = {f"c{at}": None if at else "x" * 100_000 for at in range(60)}
    made.ingest("wide", 0, ("a", [{"k": 1, "t": 1, "e": 1, **columns}]))
    shown = tidemark.open(tmp_path / "root", "wide").as_of()._repr_html_()
    assert "12 more columns" in shown
    assert "<i>null</i>" in shown
    assert len(shown) < 10_000


def test_duckdb_takes_an_answer_as_a_relation(tides: OpenCollection) -> None:
    assert tides.as_of().to_duckdb().filter("k = 2").project("v").fetchall() == [("high",)]
    with duckdb.connect() as connection:
        relation = tides.changes(after=9).to_duckdb(connection)
        assert relation.aggregate("count(*)").fetchall() == [(3,)]
    assert tidemark.sql(tides.root, "SELECT k FROM tides").to_duckdb().aggregate("count(*)").fetchall() == [(19,)]


def test_what_is_not_installed_is_said(tides: OpenCollection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"duckdb is not installed: pip install '\.\[sql\]' \(in a checkout"):
        tides.as_of().to_duckdb()

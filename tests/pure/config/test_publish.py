"""The section `publish` of a collection file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.model.publication import Destination, TableFormat

FILE = """\
name: tides
key: [k]
value: [v]
columns: {k: int, v: string}
start: 2024-01-01
time: arrival
source: {path: "{{ landing }}/{{ ds }}/*.parquet", format: parquet, envelope: append}
"""


def destinations(tmp_path: Path, text: str) -> tuple[Destination, ...]:
    path = tmp_path / "tides.yaml"
    path.write_text(FILE + text)
    return load(path).publish


def test_without_it_nothing_is_published(tmp_path: Path) -> None:
    assert destinations(tmp_path, "") == ()


def test_both_formats(tmp_path: Path) -> None:
    iceberg = "{table: db.tides, catalog: {uri: 'http://c', type: rest}, keep_snapshots: 3}"
    said = f"publish:\n  iceberg: {iceberg}\n  delta: {{}}\n"
    assert destinations(tmp_path, said) == (
        Destination(TableFormat.ICEBERG, "db.tides", (("type", "rest"), ("uri", "http://c")), keep=3),
        Destination(TableFormat.DELTA, "", by_reference=False),
    )


def test_a_catalog_by_its_name_and_by_copy(tmp_path: Path) -> None:
    said = "publish: {iceberg: {table: db.tides, catalog: prod, by: copy, copy_above: 0.5}}\n"
    (made,) = destinations(tmp_path, said)
    assert made == Destination(TableFormat.ICEBERG, "db.tides", (("name", "prod"),), False, 0.5)


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ("publish: {iceburg: {table: db.t}}", r"tides.yaml:8: unknown field 'publish.iceburg'; did you mean 'iceberg'"),
        ("publish: {iceberg: {}}", r"tides.yaml:8: .*'publish.iceberg.table' is missing"),
        ("publish: {iceberg: {table: t}}", r"tides.yaml:8: publish: table 't' is no identifier"),
        ("publish: {iceberg: {table: db.select}}", r"tides.yaml:8: publish: table db.select .* reserved word"),
        ("publish: {iceberg: {table: db.t, by: move}}", r"tides.yaml:8: publish.iceberg.by"),
        ("publish: {iceberg: {table: db.t, catalog: {token: x}}}", r"tides.yaml:8: publish: .*token is a secret"),
        ("publish: {iceberg: {table: db.t, catalog: {}}}", r"tides.yaml:8: publish.iceberg.catalog.*write the name"),
        ("publish: {delta: {copy_above: 2}}", r"tides.yaml:8: publish.delta.copy_above"),
    ],
)
def test_what_is_refused(tmp_path: Path, said: str, refusal: str) -> None:
    with pytest.raises(InvalidUsage, match=refusal) as refused:
        destinations(tmp_path, said)
    assert "\n" not in str(refused.value)

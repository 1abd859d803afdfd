"""The page about AWS DMS: its files, with and without a header and in Parquet, are the rows it has."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "aws-dms.md").read_text(encoding="utf-8")
(DECLARED,) = re.findall(r"^```yaml\n([^`]*)```", PAGE, re.M)
FILES = re.findall(r"^`customers/(.*?)\.csv`.*:\n\n```csv\n([^`]*)```", PAGE, re.M)
ROWS = re.findall(r"^```csv\n([^`]*)```", PAGE, re.M)[-1]
COMMANDS = re.findall(r"^    tidemark (.*)$", PAGE, re.M)
(WITHOUT,) = re.findall(r"`csv: (\{header: false.*?\})`", PAGE)


def bare(text: str) -> bytes:
    return text.partition("\n")[2].encode()


def parquet(text: str) -> bytes:
    names, *rows = (line.split(",") for line in text.splitlines())
    cells = [{name: None if cell == "NULL" else cell for name, cell in zip(names, row, strict=True)} for row in rows]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row | {"id": int(row["id"] or 0)} for row in cells]), file)
    return file.getvalue()


HEADER = '{null: ["NULL"]}                    # DMS\'s CsvNullValue'
WAYS = {
    "a header": (DECLARED, "csv", str.encode),
    "no header": (DECLARED.replace(HEADER, WITHOUT), "csv", bare),
    "parquet": (DECLARED.replace(f"  csv: {HEADER}\n", "").replace("csv", "parquet"), "parquet", parquet),
}


@pytest.mark.parametrize("way", WAYS)
def test_load_and_changes_of_a_day_are_the_rows_of_the_page(shell: Shell, way: str) -> None:
    declared, ending, written = WAYS[way]
    assert (len(FILES), len(COMMANDS)) == (2, 3)
    for name, text in FILES:
        shell.land(f"customers/{name}.{ending}", written(text))
    path = shell.declared(declared)
    said = [shell.ok(*command.replace("customers.yaml", path).split()) for command in COMMANDS]
    assert said[-1].out == ROWS

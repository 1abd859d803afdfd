"""Files as other systems write them, by the command line: declared, refused with the spelling, read again."""

from __future__ import annotations

import gzip

import pytest

from tests.cli.conftest import Shell

SALES = """\
name: sales
key: [id]
value: [zip, amount]
columns: {id: int, zip: string, amount: "decimal(9, 2)"}
start: 2024-01-01
time: arrival
reprocess_for: 30d
source:
  path: "{{ landing }}/sales/{{ ds }}/*"
  format: csv
  envelope: append
  csv: {delimiter: ";", decimal: ",", null: ["", "NULL"]}
"""


def test_another_dialect_counts_for_files_that_are_read_from_then_on(shell: Shell) -> None:
    shell.ok("init", shell.declared(SALES))
    shell.land("sales/2024-01-01/a.csv.gz", gzip.compress(b"id;zip;amount\n1;02138;1,50\n2;NULL;\n"))
    shell.ok("advance", "sales", "--to", "2024-01-02")
    first = shell.ok("as-of", "sales", "--format", "csv").out
    assert first == "id,zip,amount,_multiplicity\n1,02138,1.50,1\n2,,,1\n"
    changed = SALES.replace('{delimiter: ";", decimal: ",", null: ["", "NULL"]}', '{delimiter: "|", null: [""]}')
    assert shell.json("init", shell.declared(changed))["outcome"] == "redefined"
    assert shell.json("init", shell.declared(changed))["outcome"] == "nothing to do"
    shell.land("sales/2024-01-02/a.csv", "id|zip|amount\n3|NULL|2.5\n")
    shell.ok("advance", "sales", "--to", "2024-01-03")
    assert shell.ok("as-of", "sales", "--format", "csv").out == f"{first}3,NULL,2.50,1\n"
    shell.land("sales/2024-01-01/a.csv.gz", gzip.compress(b"id|zip|amount\n1|02138|1.50\n2|x|\n"))
    shell.ok("ingest", "sales", "--date", "2024-01-01")
    shell.ok("advance", "sales")
    rows = shell.ok("as-of", "sales", "--format", "csv").out.splitlines()
    assert sorted(rows) == ["1,02138,1.50,1", "2,x,,1", "3,NULL,2.50,1", "id,zip,amount,_multiplicity"]


def test_init_prints_types_and_why_ready_to_paste(shell: Shell) -> None:
    text = SALES.replace('columns: {id: int, zip: string, amount: "decimal(9, 2)"}\n', "")
    shell.land("sales/2024-01-01/a.csv", "id;zip;amount\n1;02138;1,50\n2;10001;2,25\n")
    said = shell.ok("init", shell.declared(text)).out
    block = """\
columns:
  id: int         # 2 values, given back as written
  zip: string     # 02138 would come back as 2138
  amount: string  # 1,50 would come back as 1.5; decimal(18, 2) would keep it
"""
    assert block in said
    assert (
        shell.json("init", shell.declared(text.replace("time: arrival\n", f"time: arrival\n{block}")))["inferred"] == {}
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("csv: {delimiter: '\\t'}", """source.csv: delimiter is '\\\\t'; write "\\t", in double quotes"""),
        (
            "csv: {null: [NULL]}",
            "source.csv.null: a text is expected, found nothing (as NULL and ~ are in YAML); quote it",
        ),
        ("csv: {null: NULL}", 'source.csv.null: a list of texts is expected, found nothing; write null: ["", "NULL"]'),
        ("csv: {comment: #}\n  }", 'source.csv.comment: a text is expected, found nothing; quote it: "#"'),
        ("csv: {delimiter: 0}", "source.csv.delimiter: a text is expected, found 0; quote it"),
        ("csv: {header: false}", "source.csv: header: false needs names: the columns in order"),
        ("csv: {separator: ';'}", "unknown field 'source.csv.separator'; valid are delimiter, quote"),
        ("compression: gz", "source.compression: 'gz' is not valid; did you mean"),
        ("rows: data", "rows names a field of JSON, and format is csv; remove rows"),
        ("format: avro", "source.format: 'avro' is no format here: Avro is not read; write Parquet or JSON lines"),
        (
            "format: xlsx",
            "source.format: 'xlsx' is no format here: a workbook of Excel is not read; save its sheet as CSV",
        ),
        ("format: zip", "source.format: 'zip' is no format here: a zip archive is not read; unpack it"),
        ("format: tsv", """source.format: 'tsv' is no format here: write format: csv, and csv: {delimiter: "\\t"}"""),
    ],
)
def test_words_are_refused_with_the_spelling(shell: Shell, line: str, says: str) -> None:
    lines = SALES.splitlines()[:-1]
    if line.startswith("format"):
        lines[9] = f"  {line}"
    else:
        lines.append(f"  {line}")
    assert says in shell.refused("init", shell.declared("\n".join(lines) + "\n"))

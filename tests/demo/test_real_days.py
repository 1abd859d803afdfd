"""Real days: the change files and the independent calculation share no code and must hold the same rows."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date

import pyarrow.parquet as pq

from demo import independent, layout

FIRST, LAST = date(2012, 12, 31), date(2013, 1, 3)


def test_the_files_hold_the_rows_of_the_independent_calculation(tmp_path):
    layout.lay_out(tmp_path, first=FIRST, last=LAST)
    columns = [*layout.KEY, *independent.Value._fields, "reported_at", "happened_at"]
    laid_out = Counter(
        tuple(row[name] for name in columns)
        for path in tmp_path.rglob("*.parquet")
        for row in pq.read_table(path).to_pylist()
    )
    wanted = Counter(
        (*row.key, *row.value, row.time, row.event_time)
        for flight in independent.flights()
        for row in independent.reports(flight)
        if FIRST <= row.time.date() <= LAST
    )
    assert wanted.total() == 8238
    assert laid_out == wanted


def test_the_command_prints_the_figures_of_real_days(capsys):
    assert independent.main(["--from", "2013-01-01", "--days", "2", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["rows"], first["late"]["below the seal"]) == (2036, 0)
    assert (second["rows"], second["late"]["below the seal"]) == (2754, 113)
    assert first["at_seal"]["statuses"]["arrived"] + 113 == first["now"]["statuses"]["arrived"]

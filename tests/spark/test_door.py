"""`to_spark` gives the rows of `to_arrow`, of any columns and conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import tidemark
from tests.spark.support import UPDATES, UPSERT, Made
from tests.spark.test_read import land_keys, rows_of_frame, rows_of_table

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("text", [UPDATES, UPSERT], ids=["updates", "upsert"])
def test_only_keys_and_columns_that_are_asked_for_are_read(spark: Any, tmp_path: Path, text: str) -> None:
    """Of three days' parts the first is alone and needs no merging: its file is the answer as it is while all rows are
    asked for. Of those that must fit a condition none crosses to the JVM to be sent back, and where no key of its can
    fit it is not opened."""
    made = Made(tmp_path, text.replace("live_batches: 2", "live_batches: 8"))
    for day, first_id in enumerate([0, 1000, 1100], start=1):
        land_keys(made, day, first_id)
        made.moved(day, "ingest", "seal", "drain")
    opened = tidemark.open(made.root, made.name)
    unasked = [column.name for column in opened.state.collection.columns if column.name not in ("id", "kind")]
    for ask in (opened.as_of, opened.changes):
        for columns in (["kind"], ["kind", "id"]):
            for where in (None, "id >= 0", "id < 1000 AND kind IS NOT NULL", "id >= 1000"):
                answer = ask(columns=columns, where=where)
                frame, table = answer.to_spark(spark), answer.to_arrow()
                assert len(frame.inputFiles()) == (where is None), answer
                assert rows_of_frame(frame, table.column_names) == rows_of_table(table), answer
                plan = frame._jdf.queryExecution().logical().toString()
                tasks = [line for line in plan.splitlines() if "MapInArrow" in line]
                assert len(tasks) == 1, plan
                assert not [line for line in tasks if any(f" {name}#" in line for name in unasked)], plan
    (alone,) = opened.as_of().to_spark(spark).inputFiles()
    Path(unquote(urlsplit(alone).path)).unlink()
    assert opened.as_of(where="id >= 1000").to_spark(spark).count() > 10
    with pytest.raises(Exception, match="is missing"):
        opened.as_of(where="id >= 0").to_spark(spark).count()

"""Rows that Debezium's ExtractNewRecordState made of messages, read as the refusal of them says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Shell

NEW_YEAR = 1_704_103_200_000
ORDERS: dict[str, Any] = {
    "name": "orders",
    "key": ["id"],
    "value": ["city"],
    "columns": {"id": "int", "city": "string"},
    "start": "2024-01-01",
    "time": "arrival",
    "event_time": {"column": "source.ts_ms"},
    "late": {"reemit": {}},
    "source": {"path": "{{ landing }}/orders/{{ ds }}/*.jsonl", "format": "jsonl", "envelope": "debezium"},
}


def said(id: int, city: str | None, op: str, at: int, *fields: str) -> str:
    added = {"__deleted": str(op == "d").lower(), "__op": op, "__source_ts_ms": NEW_YEAR + at, "__source_lsn": at}
    added |= {"__ts_ms": NEW_YEAR + at, "__lsn": at}
    return json.dumps({"id": id, "city": city} | {name: added[name] for name in fields}) + "\n"


@pytest.mark.parametrize(
    "fields",
    [("__deleted", "__op", "__source_ts_ms", "__lsn"), ("__op", "__ts_ms", "__source_lsn"), ("__deleted",)],
    ids=lambda fields: fields[0] if len(fields) == 1 else fields[-1],
)
def test_the_refusal_of_flattened_rows_says_what_to_write(shell: Shell, fields: tuple[str, ...]) -> None:
    changes = [(1, "A", "c", 5), (2, "B", "c", 6), (1, "A", "d", 8), (3, "late", "u", 3), (3, "C", "u", 9)]
    shell.ok("init", shell.declared(yaml.safe_dump(ORDERS)))
    shell.land("orders/2024-01-01/a.jsonl", "".join(said(*change, *fields) for change in changes))
    refused = shell.refused("ingest", "orders", "--date", "2024-01-01")
    lines = re.findall(r"`(\w+: {.*?})`", refused)
    assert lines == re.findall(
        r"`(\w+: {.*?})`", shell.refused("init", shell.declared(yaml.safe_dump(ORDERS | {"name": "o"})))
    )
    assert len(lines) == (3 if len(fields) > 1 else 2), refused
    written = dict(ORDERS) | {"name": "rows", "late": "discard"}
    written.pop("event_time")
    for line in lines:
        ((name, section),) = yaml.safe_load(line).items()
        written[name] = {**written.get(name, {}), **section} if name != "event_time" else section
    shell.ok("init", shell.declared(yaml.safe_dump(written)))
    shell.moved("rows", "2024-01-01")
    assert [(row["id"], row["city"]) for row in shell.json("as-of", "rows")["rows"]] == [(2, "B"), (3, "C")]

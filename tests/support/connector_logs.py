"""Changes of one key within one millisecond, in the order of the database, as each connector of Debezium reports them.

Each is an op and its `source`; `transaction.total_order` is beside them where a connector has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Change = tuple[str, dict[str, Any], int | None]


def _changes(connector: str, *changes: tuple[str, dict[str, Any]] | Change) -> list[Change]:
    return [(op, {"connector": connector, **source}, *(more or [None])) for op, source, *more in changes]


def _binlog(file: int, pos: int, row: int = 0, server: int = 5, snapshot: str = "false") -> dict[str, Any]:
    name = f"binlog.{file:06}"
    return {"snapshot": snapshot, "server_id": server, "gtid": None, "file": name, "pos": pos, "row": row}


def _wal(last_commit: int | None, lsn: int, snapshot: str = "false") -> dict[str, Any]:
    commit = "null" if last_commit is None else f'"{last_commit}"'
    return {"snapshot": snapshot, "sequence": f'[{commit},"{lsn}"]', "txId": 7, "lsn": lsn}


def _cdc(commit: str, change: str | None, serial: int | None = None, snapshot: str = "false") -> dict[str, Any]:
    return {"snapshot": snapshot, "change_lsn": change, "commit_lsn": commit, "event_serial_no": serial}


def _redo(commit: str | None, scn: str, rs_id: str | None, ssn: int, snapshot: str = "false") -> dict[str, Any]:
    return {"snapshot": snapshot, "scn": scn, "commit_scn": commit, "rs_id": rs_id, "ssn": ssn}


def _without(source: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in names}


_MYSQL: Sequence[tuple[str, dict[str, Any]]] = [
    ("r", _binlog(999_999, 154, server=0, snapshot="last")),
    ("c", _binlog(999_999, 154)),
    ("u", _binlog(999_999, 900, 0)),
    ("u", _binlog(999_999, 900, 1)),
    ("u", _binlog(999_999, 900, 10)),
    ("u", _binlog(999_999, 73_209)),
    ("u", _binlog(1_000_000, 157)),
    ("r", _binlog(1_000_000, 157, server=0, snapshot="incremental")),
    ("d", _binlog(1_000_000, 400)),
    ("c", _binlog(1_000_000, 1_000)),
]
LOGS: dict[str, list[Change]] = {
    "mysql": _changes("mysql", *_MYSQL),
    "mariadb": _changes("mariadb", *_MYSQL),
    "postgresql": _changes(
        "postgresql",
        ("r", _wal(None, 900, "true")),
        ("c", _wal(None, 900)),
        ("u", _wal(9_999, 11_000), 1),
        ("u", _wal(10_000, 9_500), 1),  # began before the one above, and was committed after it
        ("d", _wal(10_000, 9_600), 2),
        ("c", _wal(10_000, 9_600), 10),
        ("r", _wal(10_000, 9_600, "incremental"), None),
        ("u", _wal(10_000, 10_600), 11),
    ),
    "postgresql that says commits": _changes(
        "postgresql",
        ("c", {"commit_lsn": 9_999, "lsn": 9_000}),
        ("u", {"commit_lsn": 10_000, "lsn": 8_000}, 2),
        ("u", {"commit_lsn": 10_000, "lsn": 8_000}, 10),
    ),
    "sqlserver": _changes(
        "sqlserver",
        ("r", _cdc("00000027:00000a00:0001", None, None, "last")),
        ("c", _cdc("00000027:00000a00:0001", "00000027:00000900:0003", 1)),
        ("u", _cdc("00000027:00000ac0:0002", "00000027:00000ab8:0002", 1)),
        ("u", _cdc("00000027:00000ac0:0002", "00000027:00000ab8:0002", 2)),
        ("u", _cdc("00000027:00000ac0:0002", "00000027:00000ab8:0002", 10)),
        ("r", _cdc("00000027:00000ac0:0002", None, None, "incremental")),
        ("u", _cdc("00000027:00000AD0:0001", "00000027:00000800:0003", 1)),
        ("d", _cdc("00000100:00000001:0001", "00000027:00000801:0003", 1)),
    ),
    "db2": _changes(
        "db2",
        ("r", _without(_cdc("00000000:00000000:00000000:00a0cd9b", None, None, "true"), "event_serial_no")),
        (
            "c",
            _without(
                _cdc("00000000:00000000:00000000:00a0cd9b", "00000000:00000000:00000000:00a0aaaa"), "event_serial_no"
            ),
        ),
        (
            "u",
            _without(
                _cdc("00000000:00000000:00000000:00b00000", "00000000:00000000:00000000:00a0a000"), "event_serial_no"
            ),
        ),
        (
            "u",
            _without(
                _cdc("00000000:00000000:00000000:00b00000", "00000000:00000000:00000000:00a0b000"), "event_serial_no"
            ),
        ),
    ),
    "oracle": _changes(
        "oracle",
        ("r", _redo(None, "9999990", None, 0, "last")),
        ("c", _redo("9999999", "9999995", " 0x00002b.00014b49.0010 ", 0)),
        ("u", _redo("10000005", "9999994", " 0x00002b.00014b49.000a ", 0)),  # changed before, committed after
        ("u", _redo("10000005", "10000001", " 0x00002b.00014b4a.0010 ", 0)),
        ("u", _redo("10000005", "10000001", " 0x00002b.00014b4a.0010 ", 1)),
        ("u", _redo("10000005", "10000001", " 0x000100.00000001.0010 ", 0)),
        ("u", _redo("99999999999999999999", "10000002", " 0x000100.00000001.0010 ", 0)),
        ("d", _redo("281474976710656281474976710656", "10000003", " 0x000100.00000001.0010 ", 0)),
        ("c", _redo("281474976710656281474976710657", "10000003", " 0x000100.00000001.0010 ", 0)),
    ),
    "mongodb": _changes(
        "mongodb",
        ("r", {"snapshot": "true", "ord": 1}),
        ("c", {"snapshot": "false", "ord": 1}),
        ("u", {"snapshot": "false", "ord": 2}),
        ("u", {"snapshot": "false", "ord": 10}),
    ),
}


def messages(log: str, ts_ms: int = 0) -> list[dict[str, Any]]:
    """The messages of a log, in order; the value of the nth is n, and a delete's before-image has it, too."""
    made = []
    for number, (op, source, total_order) in enumerate(LOGS[log]):
        image = {"k": 1, "v": str(number)}
        before, after = (image, None) if op == "d" else (None, image)
        transaction = None if total_order is None else {"id": "7", "total_order": total_order}
        source = {"ts_ms": ts_ms, "table": "tides", **source}
        made.append({"op": op, "before": before, "after": after, "source": source, "transaction": transaction})
    return made

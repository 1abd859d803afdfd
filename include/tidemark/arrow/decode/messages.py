"""What a row is that is no change message of Debezium: said by name, by the fields that it has, with what to do."""

from __future__ import annotations

from collections.abc import Collection as Names
from dataclasses import dataclass

from tidemark.model.only import ANY_MESSAGE, leave_out


@dataclass(frozen=True)
class Kind:
    """A kind of rows.

    Attributes:
        name: What people call one.
        fields: The fields that each has.
        advice: What to do with them; None of those that a connector writes beside messages, which `only` leaves out.
        alone: Whether it has no other fields.
    """

    name: str
    fields: frozenset[str]
    advice: str | None = None
    alone: bool = False

    @property
    def refusal(self) -> str:
        """Why it is not taken, and what to do."""
        return f"is {self.name}; {self.advice or leave_out(ANY_MESSAGE)}"


def _rows_of(tool: str, deleted: str) -> str:
    return (
        f"messages of {tool} are not read: write the rows of their data, with type and ts as columns, and use the "
        f"upsert envelope, delete_when: \"type = '{deleted}'\""
    )


FLATTENED = "for rows that were flattened (ExtractNewRecordState) use the upsert envelope"
_SCHEMA_CHANGE = "a schema change of Debezium"
_KINDS = (
    Kind(
        "a CloudEvent",
        frozenset({"specversion", "type", "source"}),
        "have the connector write its messages without: value.converter=org.apache.kafka.connect.json.JsonConverter",
    ),
    Kind("a message of Canal", frozenset({"database", "table", "type", "isDdl"}), _rows_of("Canal", "DELETE")),
    Kind("a message of Maxwell", frozenset({"database", "table", "type"}), _rows_of("Maxwell", "delete")),
    Kind("a transaction marker of Debezium", frozenset({"status", "id", "event_count"})),
    Kind(_SCHEMA_CHANGE, frozenset({"source", "ddl"})),
    Kind(_SCHEMA_CHANGE, frozenset({"source", "tableChanges"})),
    Kind("a heartbeat of Debezium", frozenset({"ts_ms"}), alone=True),
)


def flattened(names: Names[str]) -> str:
    """What to write for rows that were flattened (ExtractNewRecordState), by the fields that it adds."""
    added = {name.removeprefix("__"): name for name in names if name.startswith("__")}
    columns, words = [], []
    if says := next((name for name in ("deleted", "op") if name in added), None):
        columns.append(f"{says}: {{type: string, from: {added[says]}}}")
        words.append(f"""delete_when: "{says} = '{"true" if says == "deleted" else "d"}'\"""")
    if at := next((added[name] for name in ("source_ts_ms", "ts_ms") if name in added), None):
        columns.append(f"happened: {{type: timestamp, from: {at}, unit: ms}}")
    if lsn := next((added[name] for name in ("source_lsn", "lsn") if name in added), None):
        columns.append(f"lsn: {{type: int, from: {lsn}}}")
        words.append("order_by: lsn")
    if not columns:
        return ""
    lines = [f"columns: {{{', '.join(columns)}}}", f"source: {{{', '.join(['envelope: upsert', *words])}}}"]
    lines += ["event_time: {column: happened}"] if at else []
    keys = "; deletes need delete.tombstone.handling.mode: rewrite at the connector" if not says else ""
    return f"; write {' and '.join(f'`{line}`' for line in lines)}{keys}"


def kind_of(names: Names[str]) -> Kind | None:
    """What a row with these fields is, which has no `op`; None if it is none of those that are known."""
    fields = frozenset(names)
    fits = (kind for kind in _KINDS if kind.fields == fields or (kind.fields < fields and not kind.alone))
    return next(fits, None)

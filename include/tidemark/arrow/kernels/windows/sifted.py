"""Rows that count for windows, and what of them their aggregates count, told by conditions without a query."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.condition import holds
from tidemark.definition.recipe import OnlyWhere, Sifted


def sifted(rows: pa.RecordBatch, rule: Sifted | None) -> pa.RecordBatch:
    """The rows for which the condition holds, with the columns that are told by others."""
    if rule is None:
        return rows
    rows = rows.filter(holds(rule.where, rows))
    more = [_only(rows, one) for one in rule.columns]
    for one, column in zip(rule.columns, more, strict=True):
        rows = rows.append_column(one.name, column)
    return rows


def _only(rows: pa.RecordBatch, rule: OnlyWhere) -> pa.Array:
    values = pa.scalar(True) if rule.of is None else rows.column(rule.of)
    return pc.if_else(holds(rule.condition, rows), values, pa.scalar(None, values.type))

"""Values that the database did not log, as a connector writes them: by the placeholder of its source, in many forms."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode.strict import is_text
from tidemark.arrow.rows.arrays import bools_of, first_true, of_bools, of_numbers, of_values, scalar_of
from tidemark.arrow.rows.columns import Bools
from tidemark.arrow.rows.lacks import lacking
from tidemark.model import canonical_json
from tidemark.model.collection import Column, ColumnType, ValueType


@lru_cache(maxsize=64)
def _forms(column_type: ValueType, placeholder: str) -> tuple[Any, ...]:
    """How a placeholder is written in columns of a type; none where values are always available."""
    data = placeholder.encode()
    encoded, of_urls = base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()
    texts = (placeholder, encoded, of_urls, data.hex())
    a_map = {placeholder: placeholder}
    match column_type:
        case ColumnType.STRING:
            return (
                *texts,
                *(json.dumps(a_map, ensure_ascii=False, separators=by) for by in ((",", ":"), (", ", ": "))),
            )
        case ColumnType.BYTES:
            return data, encoded.encode()
        case ColumnType.JSON:
            uuid = UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest(), version=3)
            signed = np.frombuffer(data, np.int8).tolist()
            values = (*texts, *([text] for text in (*texts, str(uuid))), a_map, signed)
            return (*map(canonical_json.canonical, map(json.dumps, values)),)
        case _:
            return ()


def encoded(column: Column, array: pa.Array, placeholder: str) -> pa.Array:
    """Texts of a column of bytes or json in which a bare placeholder is one of such a type."""
    if column.type not in (ColumnType.BYTES, ColumnType.JSON) or not is_text(array.type):
        return array
    is_bare = pc.equal(array, scalar_of(placeholder, array.type))
    if first_true(is_bare) < 0:
        return array
    text = (
        json.dumps(placeholder) if column.type is ColumnType.JSON else base64.b64encode(placeholder.encode()).decode()
    )
    return pc.if_else(is_bare.fill_null(scalar_of(False, pa.bool_())), scalar_of(text, array.type), array)


def unlogged(column: Column, array: pa.Array, placeholder: str) -> Bools:
    """Which values of a column were not logged."""
    forms = _forms(column.type, placeholder)
    if not forms or array.null_count == len(array):
        return np.zeros(len(array), np.bool_)
    return bools_of(pc.is_in(array, value_set=of_values([*forms], array.type)))


def with_holes(
    columns: Sequence[Column], images: Mapping[str, pa.Array], placeholder: str
) -> tuple[dict[str, pa.Array], pa.Array]:
    """Images with null for what was not logged, and of each the ids of such columns, or null."""
    masks = {column.id: unlogged(column, images[column.name], placeholder) for column in columns}
    masks = {number: mask for number, mask in masks.items() if mask.any()}
    rows = len(next(iter(images.values()))) if images else 0
    whole = {column.name: images[column.name] for column in columns}
    if not masks:
        return whole, pa.nulls(rows, pa.string())
    for column in columns:
        if column.id in masks:
            array = images[column.name]
            whole[column.name] = pc.if_else(of_bools(masks[column.id]), pa.nulls(1, array.type)[0], array)
    combinations, number = np.unique(np.stack([*masks.values()], axis=1), axis=0, return_inverse=True)
    texts = [lacking(np.array([*masks])[chosen].tolist()) or None for chosen in combinations]
    return whole, of_values(texts, pa.string()).take(of_numbers(number.reshape(-1)))

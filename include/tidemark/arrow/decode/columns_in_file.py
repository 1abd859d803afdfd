"""Which fields of a file are a column, where a collection file says `from`, `from_path` or `optional` of it.

A column is the first of its fields that is there: of a row of JSON lines, or of a file of CSV or Parquet. Two that are
there must be alike, a null counts as there. What may be missing is null then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.rows.arrays import first_true, of_numbers, of_values, scalar_of
from tidemark.errors import listed
from tidemark.model import path_value
from tidemark.model.collection import Collection, Column, Envelope
from tidemark.model.field_path import shown, steps


def if_missing(collection: Collection, column: Column) -> str:
    """What to add to a refusal of a file that does not have a column."""
    landed, source = collection.landed, collection.landed.source
    needed = {*(key.name for key in collection.key), landed.time, landed.event_time}
    if source.envelope is Envelope.UPDATES:
        needed.add(source.diff)
    return "" if column.name in needed else "; if it may be missing, write optional: true at the column"


def labelled(name: str, places: Sequence[str]) -> str:
    """A column for people, with what it is called in files if that is something else."""
    fields = list(dict.fromkeys(map(shown, places)))
    return name if fields in ([], [name]) else f"{name} (from {listed(fields)})"


def different(first: str, value: str, second: str, other: str) -> str:
    """What is wrong where two fields of one column are there."""
    return f"is {value} in {shown(first)} and {other} in {shown(second)}; leave one of them out of `from`"


def places_there(
    content: Content,
    collection: Collection,
    columns: Sequence[Column],
    is_there: Callable[[str], bool],
    has: Sequence[str],
) -> dict[str, list[str]]:
    """Of each column the places where a file has it.

    Args:
        is_there: Whether a path leads to something in the file.
        has: The names that the file has, for a refusal.

    Raises:
        BadFile: It has none, and the column is not optional.
    """
    by_name: dict[str, list[str]] = {}
    source = collection.landed.source
    for column in columns:
        places = source.places_of(column.name)
        by_name[column.name] = [place for place in places if is_there(place)]
        if not by_name[column.name] and column.name not in source.optional:
            name = labelled(column.name, places)
            advice = if_missing(collection, column)
            raise BadFile(content.path, f"column {name} is missing; the file has {listed(has)}{advice}")
    return by_name


def one_each(content: Content, paths: Iterable[str]) -> list[str]:
    """Paths of Parquet, as Parquet writes them, each once. Raises BadFile for two that it writes alike."""
    different_paths = list(dict.fromkeys(paths))
    written = {shown(path): path for path in different_paths}
    if alike := [path for path in different_paths if path not in written.values()]:
        problem = f"there is a field {shown(alike[0])} and one within another that Parquet writes the same"
        raise BadFile(content.path, f"{problem}; call one of them otherwise at the source")
    return list(written)


def type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    """The type of a column within structs; None if there is none."""
    within: Any = pa.struct(list(schema))
    for step in steps(path):
        at = within.get_field_index(step) if pa.types.is_struct(within) else -1
        if at < 0:
            return None
        within = within.field(at).type
    return within


def by_column(
    content: Content,
    places_of: Mapping[str, Sequence[str]],
    blocks: Iterator[pa.RecordBatch],
    row_of: Callable[[int], str],
    missing: pa.DataType,
) -> Iterator[pa.RecordBatch]:
    """The columns of blocks whose own are named by their places.

    Args:
        places_of: Of each column the places where the file has it.
        row_of: Where a row is, for people.
        missing: The type of a column that the file does not have.

    Raises:
        BadFile: Two places of a column have different values.
    """
    first = 0
    for block in blocks:
        arrays = []
        for name, places in places_of.items():
            several = [block.column(shown(place)) for place in places]
            for place, array in zip(places[1:], several[1:], strict=True):
                if (at := difference(several[0], array)) >= 0:
                    values = [repr(each[at].as_py()) for each in (several[0], array)]
                    problem = different(places[0], values[0], place, values[1])
                    raise BadFile(content.path, f"{row_of(first + at)}: column {name} {problem}")
            arrays.append(several[0] if several else pa.nulls(block.num_rows, missing))
        yield pa.RecordBatch.from_arrays(arrays, list(places_of))
        first += block.num_rows


def difference(array: pa.Array, other: pa.Array) -> int:
    """The first row in which two columns are not alike, or -1."""
    if array.type != other.type or pa.types.is_nested(array.type):
        pairs = zip(array.to_pylist(), other.to_pylist(), strict=True)
        return next((at for at, (value, another) in enumerate(pairs) if value != another), -1)
    differ = pc.fill_null(pc.not_equal(array, other), scalar_of(False, pa.bool_()))
    return first_true(pc.or_(differ, pc.xor(array.is_null(), other.is_null())))


def from_path(content: Content, collection: Collection, column: Column, rows: int) -> pa.Array | None:
    """A column that the file's path says, as so many texts; None for one that is in the rows.

    Raises:
        BadFile: The path does not say it, or twice.
    """
    source = collection.landed.source
    said = dict(source.from_paths).get(column.name)
    if said is None:
        return None
    path = content.file.identity
    if path_value.is_pattern(said):
        match = pc.extract_regex(of_values([path], pa.string()), path_value.named(said))[0].as_py()
        values = [] if match is None else [match[path_value.GROUP]]
    else:
        values = path_value.folder_values(path, said)
    if len(values) > 1 or (not values and column.name not in source.optional):
        what = "is twice" if values else "is not"
        folder = said if path_value.is_pattern(said) else f"a folder {said}=..."
        problem = f"column {column.name} {what} in the file's path: it is from_path: {folder}"
        raise BadFile(content.path, problem if values else problem + if_missing(collection, column))
    return repeated(values[0] if values else None, rows)


def repeated(text: str | None, rows: int) -> pa.Array:
    """A text as often as there are rows."""
    return pa.nulls(rows, pa.string()) if text is None else of_values([text], pa.string()).take(_zeros(rows))


def _zeros(rows: int) -> pa.Array:
    return of_numbers(np.zeros(rows, np.int64))

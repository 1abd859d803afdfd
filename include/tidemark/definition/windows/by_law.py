"""What the law of windows (model/window/evaluate.py) needs of a definition: aggregates of columns, and how rows get
these columns. Conditions and expressions of single rows are either steps that plain Python computes
(model/projected_row.py), or a select of single rows that Spark answers; the kernels compute neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from tidemark.definition.aggregated import result_type
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.projected import over_columns
from tidemark.definition.windows.valued import needed, valued_of
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.expression import Projection
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.windows import Windows

NUMBER = "_number"
"""The column by which rows that Spark evaluated are known again."""
_JSON = (ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING, ColumnType.JSON, ColumnType.BOOL)


@dataclass(frozen=True)
class Lawful:
    """Windows whose aggregates have columns as arguments: `columns` of the input, and those that a projection (None:
    rows are as they are) or else the `selects` give. Each select is over the rows of the one before it, under the
    input's name, and keeps NUMBER. `types` are those of the input's columns, and of what the projection gives."""

    windows: Windows
    happened: bool
    columns: tuple[str, ...]
    types: Mapping[str, ValueType]
    projection: Projection | None = None
    selects: tuple[str, ...] = ()


def lawful(declared: Checked) -> Lawful:
    """Windows as the law takes them."""
    types: dict[str, ValueType] = {column.name: column.type for column in declared.shape.columns}
    try:
        plain, projection = over_columns(declared)
    except LeftToSpark:
        return _by_selects(declared, types)
    of = [one.of for one in plain.windows.aggregates if one.of]
    places = () if declared.happened else (declared.windows.on,)
    sources = of if projection is None else projection.sources(of)
    wanted = {*declared.windows.by, *places, *sources}
    if projection is not None:
        types |= projection.shown
    columns = tuple(column.name for column in declared.shape.columns if column.name in wanted)
    return Lawful(plain.windows, declared.happened, columns, types, projection)


def _by_selects(declared: Checked, types: Mapping[str, ValueType]) -> Lawful:
    name, where = declared.input, declared.where
    valued, select = valued_of(declared, (NUMBER,))
    counting = (f"SELECT * FROM `{name}` WHERE {where.sql}",) if where else ()
    aggregates = tuple(
        replace(one, of=value.of or "", where="")
        for (one, _, _), value in zip(declared.aggregates, valued, strict=True)
    )
    looked_at = {*needed(declared, select), *(() if declared.happened else (declared.windows.on,))}
    for query in counting:
        looked_at.update(column.name for column in parsed(query).find_all(exp.Column))
    columns = tuple(column.name for column in declared.shape.columns if column.name in looked_at)
    windows = replace(declared.windows, aggregates=aggregates, where="")
    return Lawful(windows, declared.happened, columns, types, selects=(*counting, select))


def beyond_the_law(one: Aggregate, of: ValueType | None) -> str:
    """Why the law does not say what an aggregate of values of a type is (None: of rows); nothing where it does."""
    if one.function is Function.COLLECT and not (of in _JSON or isinstance(of, DecimalType)):
        return f"{one.name}: the JSON of values of type {of} is Spark's own"
    if one.function is Function.AVG and isinstance(of, DecimalType) and result_type(one.function, of) is None:
        return f"{one.name}: Spark rounds a mean of {of} twice"
    return ""

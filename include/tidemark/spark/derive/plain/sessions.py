"""Sessions that this process computes by itself, where they are so plain that they need no query: all of them, of few
rows and where none is held yet; or those that few changes reach. Starting Spark, planning and compiling would be nearly
all the cost.

Whatever is not as plain as that, or does not fit, is left to the queries, which say what is wrong, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.told_sessions import told_sessions
from tidemark.arrow.kernels.windows.cells import GROUP, keys_in
from tidemark.arrow.kernels.windows.instants import micros_of
from tidemark.arrow.kernels.windows.regions import in_regions
from tidemark.arrow.kernels.windows.sessions import FAR
from tidemark.arrow.kernels.windows.sliding import END, START
from tidemark.arrow.read import MULTIPLICITY
from tidemark.arrow.rows.columns import Ints, integers, one_batch
from tidemark.arrow.rows.known_keys import numbers_among
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.computation import Written
from tidemark.definition.recipe import InSessions
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.derived import Mode
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.plan.tasks import KeyRange
from tidemark.spark.derive.difference import stored
from tidemark.spark.derive.footers import holds_nothing, ranges_when
from tidemark.spark.derive.little import MOST_BYTES, as_updates, left_of
from tidemark.spark.derive.parts import written_here
from tidemark.spark.derive.plain.changed import changed_few
from tidemark.spark.derive.plain.near import NearHere, near_here
from tidemark.spark.derive.plain.rows import repeated, rows_in_windows, told_rows
from tidemark.spark.derive.touched import named, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, Views


def sessions_built_here(views: Views) -> list[Written] | None:
    """What was written of all sessions, of a collection that holds nothing; None where that is not plain, or rows are
    not few."""
    computation = views.computation
    rule = None if computation.recipe is None else computation.recipe.windowed
    if computation.mode is not Mode.WHOLE or not isinstance(rule, InSessions) or not _fits(views, rule):
        return None
    keyed = [column.name for column in computation.collection.key] == [*rule.by, WINDOW_START, WINDOW_END]
    rows = rows_in_windows(views, rule) if keyed and holds_nothing(computation) else None
    if rows is None:
        return None
    keys = keys_in(rows, rule.by)
    found = _told(views, rule, rows, keys.numbers, pa.Table.from_batches([keys.values]))
    return None if found is None else written_here(found.to_batches(), computation)


def sessions_touched_here(views: Views, rule: InSessions) -> list[pa.RecordBatch] | None:
    """By what the sessions that few changes reach differ from those held; None where that is not plain, or not
    little."""
    if not _fits(views, rule):
        return None
    changed = changed_few(views, rule)
    if changed is None:
        return None
    few, unplaced = changed
    near = near_here(views, rule, few)
    rows = None if near is None else _rows_near(views, rule, few, near)
    if near is None or rows is None:
        return None
    found = _told(views, rule, *rows, near.keys)
    if found is None:
        return None
    views.unplaced = unplaced
    return left_of(views, found, near.own)


def _told(views: Views, rule: InSessions, rows: pa.Table, numbers: Ints, keys: pa.Table) -> pa.Table | None:
    """The sessions of rows with some of the keys as updates, in order; None where something does not fit."""
    plain = rule.plain or ()
    try:
        found = told_sessions(rows, numbers, micros_of(rows.column(rule.on)), rule.kind, plain)
    except (InvalidUsage, ArithmeticError):
        return None
    columns = [column.take(found.column(GROUP)) for column in keys.columns]
    columns += [found.column(name) for name in (START, END, *(one.name for one in plain))]
    names = [*rule.by, WINDOW_START, WINDOW_END, *(one.name for one in plain)]
    return as_updates(views, pa.table(columns, names))


def _fits(views: Views, rule: InSessions) -> bool:
    """Whether sessions are plain, and the collection holds these columns, and as they come."""
    if rule.plain is None or rule.kind.gap > FAR:
        return False
    types = views.types_here(rule.input)
    bound = ColumnType.INT if types[rule.on] is ColumnType.INT else ColumnType.TIMESTAMP
    told = {name: types[name] for name in rule.by} | {WINDOW_START: bound, WINDOW_END: bound}
    told |= {one.name: one.type for one in rule.plain}
    return told == {column.name: column.type for column in stored(views.computation.collection)}


def _rows_near(views: Views, rule: InSessions, few: pa.Table, near: NearHere) -> tuple[pa.Table, Ints] | None:
    """The rows of the input that lie where changes reach, in the columns that are needed, each as often as it is there,
    and the numbers of their keys; None where they are not little, or one is there fewer times than none."""
    names = list(dict.fromkeys([rule.on, *(one.of for one in rule.plain or () if one.of)]))
    ranges = _ranges(views, rule, few, near)
    most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
    held = views.held_here(rule.input, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)
    if held is None:
        return None
    found, numbers, size = [], [np.zeros(0, np.int64)], 0
    for rows, of in _near(held, rule, near):
        numbered = rows.select([*names, MULTIPLICITY]).append_column(GROUP, pa.array(of))
        some = repeated(numbered, most_bytes=MOST_BYTES - size)
        if some is None:
            return None
        found.append(some.select(names))
        numbers.append(integers(some, GROUP))
        size += some.nbytes
    types = views.types_here(rule.input)
    schema = pa.schema([(name, arrow_type(types[name])) for name in names])
    return pa.Table.from_batches(found, schema if not found else None), np.concatenate(numbers)


def _ranges(views: Views, rule: InSessions, few: pa.Table, near: NearHere) -> Sequence[KeyRange]:
    """The ranges of keys outside which there are no such rows; none: all."""
    given = views.computation.input(rule.input)
    ranges = ranges_holding(few, views, rule.input, given.state.collection, named(rule.by))
    return ranges or ranges_when(given, rule.on, *near.spans)


def _near(held: Iterator[pa.RecordBatch], rule: InSessions, near: NearHere) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Of some rows those that lie where changes reach, and the numbers of their keys."""
    keys = one_batch(near.keys)
    for rows in held:
        rows = rows.filter(pa.array(told_rows(rows, (rule.on, *rule.by))))
        numbers = numbers_among(keys, rows.select(list(rule.by)))
        inside = in_regions(numbers, micros_of(rows.column(rule.on)), near.regions)
        if inside.any():
            yield rows.filter(pa.array(inside)), numbers[inside]

"""Rows by what they take in memory: cut, and put in order, piece by piece.

A row may have forty bytes or megabytes, and an Arrow array of strings holds no more than 2 GiB. So whatever gathers
rows counts their bytes, and what may be large is handed on in pieces of at most so many bytes, or of a single row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Ints, row_bytes, values
from tidemark.arrow.rows.order import last_start, ranks, sort, sort_indices, starts
from tidemark.errors import InvalidUsage

PIECE_BYTES = 64 * 2**20
"""Most bytes that are put in order, or handed on, as one piece."""
NARROW = 1024
"""Bytes of a row up to which columns are copied into one array to sort by: that is faster, and narrow rows are many."""


def pieces(rows: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """The rows cut into slices of at most `most` bytes."""
    if rows.nbytes <= most:
        yield rows
        return
    start = 0
    for length in _lengths(row_bytes(rows), most):
        yield rows.slice(start, length)
        start += length


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The batches as one; copies only what is in several."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def size_of(batches: Iterable[pa.RecordBatch]) -> int:
    """Their bytes in memory."""
    return sum(int(rows.nbytes) for rows in batches)


def sorted_pieces(
    batches: Sequence[pa.RecordBatch],
    columns: Sequence[str],
    *,
    together: Sequence[str] | None = None,
    resort: bool = True,
    most: int,
) -> Iterator[pa.RecordBatch]:
    """The rows of all batches in order of `columns`, equal rows as they were, in pieces of at most `most` bytes, in the
    memory of a few pieces beside the batches.

    Rows equal in `together`, the first of `columns`, stay in one piece. A single batch is in order, but to `resort`.
    """
    sorts = resort or len(batches) > 1
    if size_of(batches) <= most:
        yield sort(joined(batches), columns) if sorts else batches[0]
        return
    cut = gathered_pieces(batches, ordered_rows(batches, columns), most) if sorts else pieces(batches[0], most)
    yield from cut if together is None else _kept_together(cut, together)


def ranks_of(batches: Sequence[pa.RecordBatch], columns: Sequence[str], most: int) -> Ints:
    """For each row of all batches the number of distinct rows before its own in the order (order.ranks), looking at
    `most` bytes at a time."""
    if size_of(batches) <= most:
        return ranks(joined(batches), columns)
    order = ordered_rows(batches, columns)
    begins, before = [], None
    for piece in gathered_pieces(batches, order, most):
        rows = piece if before is None else pa.concat_batches([before, piece])
        begins.append(starts(rows, columns)[rows.num_rows - piece.num_rows :])
        before = compacted(piece.slice(piece.num_rows - 1), piece)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(np.concatenate(begins)) - 1
    return numbers


def compacted(rows: pa.RecordBatch, of: pa.RecordBatch) -> pa.RecordBatch:
    """A slice of a batch, copied if it is a small share: a slice keeps all of its batch in memory."""
    if rows.num_rows == of.num_rows or 2 * rows.nbytes > of.nbytes:
        return rows
    return rows.take(of_numbers(np.arange(rows.num_rows)))


def ordered_rows(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> Ints:
    """By which rows of all batches, numbered through, to take them to have them in order."""
    some = [rows.select(list(columns)) for rows in batches]
    size = size_of(some)
    if size <= NARROW * sum(rows.num_rows for rows in some) and size < 2**30:
        order = sort_indices(joined(some), columns)
    else:
        order = sort_indices(pa.Table.from_batches(some), columns)
    return np.asarray(values(order), np.int64)


def gathered(batches: Sequence[pa.RecordBatch], rows: Ints) -> pa.RecordBatch:
    """Some rows of all batches, numbered through, as one batch; batches that hold none of them are not copied."""
    ends = np.cumsum([some.num_rows for some in batches])
    distinct, places = np.unique(rows, return_inverse=True)
    cuts = np.searchsorted(distinct, ends)
    found, start = [], 0
    for at, end in enumerate(cuts.tolist()):
        if end > start:
            first = int(ends[at]) - batches[at].num_rows
            found.append(batches[at].take(of_numbers(distinct[start:end] - first)))
        start = end
    return joined(found).take(of_numbers(places)) if found else batches[0].slice(0, 0)


def gathered_pieces(batches: Sequence[pa.RecordBatch], rows: Ints, most: int) -> Iterator[pa.RecordBatch]:
    """The same, in pieces."""
    if size_of(batches) <= most:
        yield from pieces(joined(batches).take(of_numbers(rows)), most)
        return
    sizes = np.concatenate([row_bytes(some) for some in batches])[rows]
    start = 0
    for length in _lengths(sizes, most):
        yield gathered(batches, rows[start : start + length])
        start += length


def wholes(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], *, rows: int, room: int
) -> Iterator[pa.RecordBatch]:
    """Rows that come in order, `rows` of them or more at a time, or fewer that take half the `room` in bytes, cut only
    where a row differs from the one before it in `columns`. InvalidUsage where rows that are equal in these, so belong
    together, take more than the room. No piece takes more, and no more than that is gathered, but for one row."""
    waiting, count, size = list[pa.RecordBatch](), 0, 0
    wanted, most = rows, room // 2
    for batch in (some for whole in batches for some in pieces(whole, room // 8)):
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count < wanted and size < most:
            continue
        together = joined(waiting)
        at = last_start(together, columns)
        if at:
            yield together.slice(0, at)
        left = compacted(together.slice(at), together)
        if left.nbytes > room:
            raise InvalidUsage(f"rows that belong together take more than {room} bytes")
        # Looked at again only when there are twice as many: so each row is looked at a few times, however many there
        # are; of what nearly fills the room more often, as what is handed on must fit there.
        waiting, count, size = [left], left.num_rows, left.nbytes
        wanted, most = max(rows, 2 * count), max(room // 2, min(2 * size, room - room // 8))
    if waiting:
        yield joined(waiting)


def _kept_together(cut: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Pieces in order, cut again where a row differs from the one before it in `columns`."""
    rest: pa.RecordBatch | None = None
    for piece in cut:
        rows = piece if rest is None else pa.concat_batches([rest, piece])
        last = last_start(rows, columns)
        if last:
            yield rows.slice(0, last)
        rest = compacted(rows.slice(last), rows)
    if rest is not None:
        yield rest


def _lengths(sizes: Ints, most: int) -> Iterator[int]:
    """Of how many rows of these sizes each piece is."""
    ends = np.cumsum(sizes)
    start = before = 0
    while start < len(ends):
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield end - start
        start, before = end, int(ends[end - 1])

"""Whether the bounds that are recorded of a part and its chunks are those of its rows, found by reading all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidemark.arrow.parts.bounds import chunk_bounds
from tidemark.arrow.parts.chunks import spannable
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.parts.timelines import TimelinesSeen, recorded_unit
from tidemark.arrow.rows.fields import field_id
from tidemark.arrow.rows.schema import with_timelines
from tidemark.errors import Corruption
from tidemark.model.chunk.bounds import Bounds
from tidemark.model.chunk.footer import TimelineChunks


class Recount:
    """The bounds of the timelines that a part's record names, counted again as a writer counts them."""

    def __init__(self, opened: OpenedPart, key_width: int) -> None:
        self._opened = opened
        self._fields = {field_id(field): field for field in opened.schema}
        known = [each.id for each in opened.part.timelines if _is_countable(self._fields.get(each.id))]
        self._seen = TimelinesSeen(with_timelines(opened.schema, known), key_width)

    def add(self, rows: pa.RecordBatch, groups: Sequence[int]) -> None:
        """Take the rows of some row groups, of so many rows each."""
        start = 0
        for count in groups if self._opened.part.timelines else ():
            self._seen.add(rows.slice(start, count))
            start += count

    def differences(self) -> Iterator[str]:
        """What is recorded otherwise than the rows have it, in the record of the part and in its footer."""
        part = self._opened.part
        found = {each.id: each.bounds for each in self._seen.bounds()}
        for recorded in part.timelines:
            if recorded.id not in found:
                yield f"it has no column {recorded.id} of a timeline, of which bounds are recorded"
            elif found[recorded.id] != recorded.bounds:
                name = self._fields[recorded.id].name
                yield f"timeline {name} is recorded as {recorded.bounds}, the rows have {found[recorded.id]}"
        try:
            chunks = self._opened.timelines
        except Corruption as error:
            yield str(error)
            return
        for seen in self._seen.chunks():
            yield from self._of_chunks(seen, chunks.get(seen.id), self._seen.bounds_of_chunks()[seen.id])

    def _of_chunks(
        self, seen: TimelineChunks, recorded: TimelineChunks | None, bounds: Sequence[Bounds]
    ) -> Iterator[str]:
        """The same of the chunks of one timeline: by Parquet's statistics, and by the entry of the footer."""
        field = self._fields[seen.id]
        for group, (known, found) in enumerate(zip(chunk_bounds(self._opened, field), bounds, strict=True)):
            if known is not None and not known.times(recorded_unit(field.type)).encloses(found):
                yield f"row group {group} has statistics of timeline {field.name} of {known}, the rows have {found}"
        if recorded is None:
            yield f"its footer does not say which row groups ascend by timeline {field.name}"
            return
        for group, ascends in enumerate(seen.ascends):
            if recorded.ascends[group] > ascends:
                yield f"row group {group} is recorded to ascend by timeline {field.name}, and does not"
        for number in sorted({*seen.present, *recorded.present}):
            nothing = (None,) * len(bounds)
            pairs = zip(recorded.present.get(number, nothing), seen.present.get(number, nothing), strict=True)
            for group, (known_present, found_present) in enumerate(pairs):
                if known_present != found_present:
                    yield (
                        f"row group {group} is recorded to have values of column {number} at {known_present} of "
                        f"timeline {field.name}, the rows have them at {found_present}"
                    )


def _is_countable(field: pa.Field | None) -> bool:
    return field is not None and spannable(field.type)

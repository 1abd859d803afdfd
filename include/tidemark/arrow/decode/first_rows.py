"""When the first rows of a delta file happened, without reading all of it."""

from __future__ import annotations

import numpy as np

from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.source import decode
from tidemark.arrow.rows.columns import values
from tidemark.errors import NotReady
from tidemark.model.collection import Collection
from tidemark.model.ledger import SourceFile


def first_event_time(file: SourceFile, collection: Collection) -> int | None:
    """The least event time among the first rows of a file: those that are decoded together, some thousands.

    Returns:
        Microseconds; None if the rows bring no event time, there are none, or they cannot be decoded: the ingest of the
        file says why.

    Raises:
        Unavailable: The file cannot be read now.
    """
    column = collection.landed.happened_in
    if column is None:
        return None
    try:
        rows = next(decode(Content(file, "", file.bytes, None), collection), None)
    except (BadFile, NotReady):
        return None
    return None if rows is None else int(np.asarray(values(rows.column(column)), np.int64).min())

"""A read to its end, on the clock, and its answer compared with one calculated separately, off the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from benchmarks.counting import Traffic
from benchmarks.feed import Fingerprint, fingerprint_of
from benchmarks.workload import plus


def checked_read(
    traffic: Traffic, batches: Iterator[pa.RecordBatch], multiplicity: str, what: str, expected: Fingerprint
) -> dict[str, Any]:
    """CPU seconds, rows, bytes and calls of a read whose rows count as often as `multiplicity` says.

    AssertionError, naming `what` was read, if the rows do not add up to what is expected.
    """
    traffic.taken()
    spent, rows = 0.0, 0
    total: Fingerprint = dict.fromkeys(expected, 0)
    while True:
        before = time.process_time()
        batch = next(batches, None)
        spent += time.process_time() - before
        if batch is None:
            break
        rows += batch.num_rows
        total = plus(total, fingerprint_of(pa.Table.from_batches([batch]), multiplicity))
    if total != expected:
        raise AssertionError(f"{what} gave {total}, calculated were {expected}")
    counts = traffic.taken()
    return {
        "cpu_seconds": round(spent, 4),
        "rows": rows,
        "bytes_read": counts["bytes_read"],
        "calls": counts["calls"],
    }

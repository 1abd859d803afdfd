"""Bounded memory, measured: what a child process has at its peak does not grow with what it merges, reads, compares
or trims."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from benchmarks.measure import in_fresh_process
from tests.pure.arrow.samples import SMALL
from tests.support.measured import Measure
from tests.support.memory import peak_bytes
from tests.support.reading import as_of_batches, changes_batches
from tidemark.arrow import runs
from tidemark.arrow.kernels import difference, merge, trim
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.schema import updates_schema
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, Part, TraceBatch
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.model.full_snapshot import FullSnapshot
from tidemark.model.interval import Interval
from tidemark.model.times import Times
from tidemark.plan.full_snapshots import difference_task
from tidemark.plan.tasks import KeyRange, MergeTask, TrimTask
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.local import LocalStore

pytestmark = [pytest.mark.pure, pytest.mark.measured]

WIDE, INPUTS = 400, 5
GROUP, BUFFERED = 1_000, 10_000
"""Small row groups and buffers, so that a few megabytes fill them: what is larger than memory need not be large."""
LITTLE, MUCH = 10_000, 110_000
"""Rows of each input: what fills all buffers, and eleven times that."""
ALLOWED = 40 * 2**20

Inputs = list[list[Part]]


def written(store: LocalStore, name: str, rows: int) -> Inputs:
    """Sorted inputs whose keys alternate, each of other times, with words that compress well."""
    schema = updates_schema(SMALL)
    inputs = []
    for number in range(INPUTS):
        with PartWriter(store, f"{name}{number}", schema, key_width=1, facts=False, group_rows=GROUP) as writer:
            for start in range(0, rows, GROUP):
                some = range(start, start + GROUP)
                words = pa.array([f"{number}{row % 7}".ljust(WIDE, "w") for row in some])
                times = pa.array([number * 10 + row % 10 for row in some], pa.int64())
                keys = pa.array([row * INPUTS + number for row in some], pa.int64())
                columns = [keys, words, times, times, pa.array([1] * GROUP, pa.int64())]
                writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
            inputs.append(list(writer.close()))
    return inputs


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Inputs, Inputs]:
    root = str(tmp_path_factory.mktemp("memory"))
    store = LocalStore(root)
    return root, written(store, "little", LITTLE), written(store, "much", MUCH)


def merging(store: LocalStore, inputs: Inputs) -> None:
    function = CompactionFunction(40, (Rung(30, 5), Rung(0, 15)))
    parts = tuple(part for each in inputs for part in each)
    answer = merge.merge_range(store, MergeTask(SMALL, parts, KeyRange(), 0, 10**6, function, "out"))
    assert sum(part.rows for part in answer.parts) == answer.rows_read == sum(part.rows for part in parts)


def reading(store: LocalStore, inputs: Inputs) -> None:
    trace = []
    for number, parts in enumerate(inputs):
        ref = parts_table.save(store, f"{parts[0].file.key}.json", parts)
        rows = sum(part.rows for part in parts)
        bounds = Description(number * 10, number * 10 + 10)
        trace.append(TraceBatch(f"t{number}", bounds, 0, rows, 1, 0, ref, len(parts)))
    state = Arrangement(
        SMALL, complete_below=INPUTS * 10, seal=INPUTS * 10, since=40, rungs=(Rung(0, 10),), trace=tuple(trace)
    )
    updates = sum(batch.rows for batch in trace)
    assert sum(rows.num_rows for rows in as_of_batches(store, state)) == updates
    changed = sum(rows.num_rows for rows in changes_batches(store, state, after=9))
    assert changed == updates * (INPUTS - 1) // INPUTS


def comparing(store: LocalStore, inputs: Inputs) -> None:
    """Two full snapshots with a trace of three batches: all of the trace and of the first full snapshot goes again."""
    *batches, first, second = inputs
    said = [(FullSnapshot("", Interval(at, at + 1), 0), parts) for at, parts in ((100, first), (110, second))]
    trace = [part for each in batches for part in each]
    task = difference_task(SMALL, trace, Times(), said, KeyRange(), "differences")
    answer = difference.difference_range(store, task)
    rows = sum(part.rows for part in first)
    assert (answer.rows_read, sum(part.rows for part in answer.parts)) == (5 * rows, 6 * rows)


def trimming(store: LocalStore, inputs: Inputs) -> None:
    for part in inputs[0]:
        answer = trim.trim_part(store, TrimTask(SMALL, part, False, 5, 2**63 - 1, "trimmed", 10))
        assert sum(kept.rows for kept in answer.parts) == part.rows // 2


def grown(work: Callable[[LocalStore, Inputs], None], root: str, little: Inputs, much: Inputs) -> int:
    """Bytes by which the peak of `much` is above that of `little`, buffers being small."""
    setattr(merge, "merged", partial(merge.merged, buffered_rows=BUFFERED))  # noqa: B010
    setattr(runs, "BUFFERED_ROWS", BUFFERED)  # noqa: B010
    setattr(difference, "differences", partial(difference.differences, buffered_rows=BUFFERED))  # noqa: B010
    for module in (merge, trim, difference):
        setattr(module, "PartWriter", partial(PartWriter, group_rows=GROUP))  # noqa: B010
    store = LocalStore(root)
    work(store, little)
    before = peak_bytes()
    work(store, much)
    return peak_bytes() - before


@pytest.mark.parametrize("work", [merging, reading, comparing, trimming])
def test_work_on_more_than_memory_stays_within_it(
    stored: tuple[str, Inputs, Inputs], work: Callable[[LocalStore, Inputs], None], measure: Measure
) -> None:
    used = in_fresh_process(grown, work, *stored)
    more = (INPUTS if work is not trimming else 1) * (MUCH - LITTLE) * (WIDE + 40)
    measure.below(f"for {more / 2**20:.0f} MiB more", used / 2**20, ALLOWED / 2**20, "MiB")
    assert work is trimming or more > 5 * ALLOWED

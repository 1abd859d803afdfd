"""The kernel behind the gate's question whether what a correction took back had been there to take."""

from __future__ import annotations

from tidemark.arrow.kernels.correct import differences
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, keys_of
from tidemark.plan.tasks import RetractedAnswer, RetractedTask
from tidemark.storage.stores.store import ObjectStore


def retracted_rows(store: ObjectStore, task: RetractedTask) -> RetractedAnswer:
    """Add up all that the files contributed, corrections among it: a row that there are fewer than none of was taken
    back without having been contributed.

    True of the envelope `append`, whose files say how often there is a row, and never that there is less of one.
    Raises Corruption if a part is not what was recorded.
    """
    width, missing = len(task.collection.key), 0
    # What was contributed, turned: the difference to a file that says nothing.
    for rows in differences(store, task, [], [], keys=task.keys):
        diffs = integers(rows, DIFF)
        missing += int(diffs[diffs > 0].sum())
        if keys_of(rows, [rows.num_rows - 1], width)[0] > task.last:
            break
    return RetractedAnswer(missing)

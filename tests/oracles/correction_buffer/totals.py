"""How much a buffer contains and has contained, as running totals: nothing is walked to compute them.

>>> totals = Totals().after(records=5, capacity=204).after(records=2, capacity=8).after(records=2, capacity=8)
>>> totals.records, totals.insertions, totals.deletions, totals.peak_records
(2, 5, 3, 5)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Totals:
    """`records` are the rows contained, those that would cancel among them; `capacity` is the rows that have room.

    The others only ever grow: by how much these two rose and fell, each from operation to operation, and their peaks.
    """

    records: int = 0
    capacity: int = 0
    insertions: int = 0
    deletions: int = 0
    capacity_increases: int = 0
    capacity_decreases: int = 0
    peak_records: int = 0
    peak_capacity: int = 0

    def after(self, *, records: int, capacity: int) -> Totals:
        """The totals after an operation that left so much."""
        return Totals(
            records,
            capacity,
            self.insertions + max(0, records - self.records),
            self.deletions + max(0, self.records - records),
            self.capacity_increases + max(0, capacity - self.capacity),
            self.capacity_decreases + max(0, self.capacity - capacity),
            max(self.peak_records, records),
            max(self.peak_capacity, capacity),
        )


EMPTY_TOTALS = Totals()

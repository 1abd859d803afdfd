"""Rows ahead as numbers: drains and settling over batches whose parts are known by the times of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from support.world import collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.interval import Interval
from tidemark.plan.undue import SettleRequest, cuts, plan_settle, stage, starts_at

Times = Mapping[int, int]
"""Rows by time."""


def part_of(name: str, times: Times) -> Part:
    rows, first, last = sum(times.values()), min(times), max(times)
    return Part(ObjectRef(name, rows, ""), rows, 0, (((0,), rows),), (0,), first, last, first, last)


def batch_of(name: str, parts: list[Part], interval: Interval, level: int = 0) -> UnsealedBatch:
    rows = sum(part.rows for part in parts)
    first, last = min(part.first_time for part in parts), max(part.last_time for part in parts)
    return UnsealedBatch(name, interval, tuple(parts), len(parts), rows, rows, 0, first, last, first, last, level=level)


@dataclass
class FarRows:
    """A collection that drains an interval of `width` at a time. `opened` and `read` count the parts that drains open
    and the rows in them, `written` the rows that settling rewrites."""

    width: int
    state: Arrangement = field(default_factory=lambda: Arrangement(collection()))
    contents: dict[str, Counter[int]] = field(default_factory=dict)
    opened: int = 0
    read: int = 0
    due: int = 0
    written: int = 0
    most: int = 0
    names: count[int] = field(default_factory=lambda: count(1))

    def day(self, times: Times, *, cut: bool = True, settles: bool = True) -> Counter[int]:
        """The rows of an interval come, whose end is drained; what is due is emitted."""
        lower, upper = self.state.seal, self.state.seal + self.width
        came = self._stored(Counter(times), upper, cut=cut)
        opened = [part for part in came if part.first_time < upper]
        for batch in self.state.ahead:
            opened += [part for part in batch.parts or () if part.first_time < upper and part.last_time >= lower]
        due = Counter[int]()
        for part in opened:
            due += Counter({t: n for t, n in self.contents[part.file.key].items() if lower <= t < upper})
        self.opened, self.read = self.opened + len(opened), self.read + sum(part.rows for part in opened)
        self.due += sum(due.values())
        waits = [part for part in came if part.last_time >= upper]
        left = [batch_of(f"b{next(self.names)}", waits, Interval(lower, upper))] if waits else []
        for batch in self.state.ahead:
            rest = [part for part in batch.parts or () if part.last_time >= upper]
            left += [batch_of(batch.id, rest, batch.interval, batch.level)] if rest else []
        drained = TraceBatch(f"t{upper}", Description(0, upper), 0, 0, 0, 0)
        self.state = replace(self.state, complete_below=upper, seal=upper, trace=(drained,), ahead=tuple(left))
        while settles and (staged := stage(self.state)):
            parts = {batch.id: tuple(batch.parts or ()) for batch in staged}
            self.settle(plan_settle(self.state, staged, parts))
        self.most = max(self.most, len(self.state.ahead))
        return due

    def settle(self, request: SettleRequest) -> None:
        others = tuple(batch for batch in self.state.ahead if batch not in request.inputs)
        made = []
        for rows in request.outputs:
            parts = [part for batch in rows.batches for part in batch.parts or ()] + list(rows.parts)
            if not rows.as_they_are:
                lower = max(request.lower, rows.lower)
                inside: Counter[int] = Counter()
                for part in parts:
                    inside += Counter(
                        {t: n for t, n in self.contents[part.file.key].items() if lower <= t < rows.upper}
                    )
                self.written += sum(inside.values())
                parts = self._stored(inside, 0, cut=False) if inside else []
            made += [batch_of(f"b{next(self.names)}", parts, request.interval, request.level)] if parts else []
        self.state = replace(self.state, ahead=(*others, *made))

    def _stored(self, times: Counter[int], frontier: int, *, cut: bool) -> list[Part]:
        starts = starts_at(frontier, self.width)
        bounds = []
        if cut:
            counts = [sum(n for t, n in times.items() if t < starts[0])]
            for lower, upper in zip(starts, [*starts[1:], 2**63], strict=True):
                counts.append(sum(n for t, n in times.items() if lower <= t < upper))
            bounds = list(cuts(counts, starts))
        found = []
        for lower, upper in zip([-1, *bounds], [*bounds, 2**63], strict=True):
            inside = Counter({t: n for t, n in times.items() if lower <= t < upper and n})
            if inside:
                name = f"p{next(self.names)}"
                self.contents[name] = inside
                found.append(part_of(name, inside))
        return found

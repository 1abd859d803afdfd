"""Whether what a change names is there, and stays: looked at before the version that names it is created.

An attempt writes long before it commits. Its objects may be gone by then, or about to go: to a collector whose clock
was set ahead minutes may count as a day. A collector removes nothing before it has committed a version of its own, so
an attempt that folds none since its plan need only look once; one that does asks the collector's plan as well
(docs/decisions/0024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement, LedgerRun
from tidemark.model.batch import ObjectRef
from tidemark.model.change import Attempted, Change, Dropped, LedgerMerged
from tidemark.plan.collect import COLLECT, Graces, due, plan_of
from tidemark.storage.log import plans
from tidemark.storage.log.references import Root, key_of, roots
from tidemark.storage.log.versions import retried
from tidemark.storage.read_many import read_many
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.store import Missing, ObjectStore

T = TypeVar("T")
SECOND = 1_000_000


@dataclass
class Written:
    """The objects that `change` names and `before`, the state it was planned upon, does not.

    `limit` is for how many seconds an attempt may go on at most: an object that a collector has listed for longer
    belongs to no attempt that still runs.
    """

    store: ObjectStore
    change: Change
    before: Arrangement | None
    limit: float
    pause: Callable[[float], None]
    _looked: bool = False
    _sweeps: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def follows(self, other: Change) -> None:
        """Another change was committed since the plan."""
        if isinstance(other, Attempted) and other.fence.step == COLLECT:
            self._sweeps.append(other.fence.token)
        elif isinstance(other, Dropped) and plan_of(other.token):
            self._sweeps.append(other.token)

    def lost(self) -> str | None:
        """Why the objects cannot be relied on, or None. Costs nothing for a change that names none, and from the second
        time on only if a collector committed in between.

        Corruption where an object that was written is there and is not what was recorded.
        """
        if self._looked and not self._sweeps:
            return None
        known = {ref.key for ref in self.before.objects()} if self.before else set()
        fresh = [root for root in roots(self.change) if key_of(root) not in known]
        try:
            keys = {key for root in fresh for key in self._named(root)}
        except Missing as missing:
            return _removed(str(missing))
        if gone := self._absent(keys):
            return _removed(gone)
        for token in self._sweeps if keys else ():
            if reason := self._doomed(token, keys):
                return reason
        self._looked = True
        self._sweeps.clear()
        return None

    def _named(self, root: Root) -> Iterator[str]:
        """What a reference leads to. What is opened on the way is there."""
        if isinstance(root, LedgerRun):
            # The late rows that a merged run names were named by the runs that it replaces.
            yield from self._of_ledger(root, late=not isinstance(self.change, LedgerMerged))
            return
        yield root.key
        if parts_table.is_one(root):
            yield from self._of_parts(root.key, lambda: parts_table.open_block(self.store, root))

    def _of_parts(self, key: str, read: Callable[[], parts_table.Block]) -> Iterator[str]:
        """The objects that an object of a table of parts names."""
        block = self._opened(key, read)
        if isinstance(block, parts_table.PartsTable):
            yield from (part.file.key for part in block.parts)
            return
        for child in block.blocks:
            yield child.object.key
            yield from self._of_parts(child.object.key, partial(parts_table.open_child, self.store, child))

    def _of_ledger(self, span: ledger.Span, *, late: bool) -> Iterator[str]:
        if isinstance(span.object, ObjectRef):
            yield span.object.key
            if span.entries <= ledger.LEAF and not late:
                return
        block = self._opened(span.object.key, lambda: ledger.open_block(self.store, span))
        if isinstance(block, ledger.LedgerNode):
            for child in block.blocks:
                yield from self._of_ledger(child, late=late and child.late > 0)
        else:
            yield from (entry.late.key for entry in block.entries if entry.late is not None)

    def _opened(self, key: str, read: Callable[[], T]) -> T:
        try:
            value = retried(read, self.pause)
        except Corruption:
            if self.store.stat(key) is None:
                raise Missing(key) from None
            raise
        self._seen.add(key)
        return value

    def _absent(self, keys: set[str]) -> str | None:
        """One of the keys that has no object. A batch's folder is listed once, whatever it holds; what a list does not
        show is asked for by name, as a mounted file system may show names late."""
        asked = keys - self._seen
        folders = sorted({key.rpartition("/")[0] + "/" for key in asked if key.startswith("data/")})
        listed = (retried(lambda at=folder: self.store.keys(at), self.pause) for folder in folders)  # type: ignore[misc]
        unseen = sorted(asked - {key for keys in listed for key in keys})
        infos = read_many(lambda key: retried(lambda: self.store.stat(key), self.pause), unseen)
        return next((key for key, info in zip(unseen, infos, strict=True) if info is None), None)

    def _doomed(self, token: str, keys: set[str]) -> str | None:
        """Why an object is about to go: by the plan that a collector had before it committed with `token`."""
        number = plan_of(token)
        try:
            plan = plans.load(self.store, plans.key_of(number), self.pause)
            appeared = retried(lambda: self.store.stat(plans.key_of(number)), self.pause)
        except Missing:
            appeared = None
        if appeared is None:
            return f"what plan {number} of the collector removed is not known any more"
        limit, now = round(self.limit * SECOND), round(appeared.modified * SECOND)
        doomed = (entry.key for entry in due(plan, Graces(limit, limit), now=now).objects if entry.key in keys)
        return next((f"{key} is being removed by plan {number} of the collector" for key in doomed), None)


def _removed(key: str) -> str:
    return f"{key} was removed before it could be committed"

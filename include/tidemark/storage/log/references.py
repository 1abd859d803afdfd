"""What versions name: every object that is recorded in one, and what those name in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any

from tidemark.model.arrangement import LedgerRun
from tidemark.model.batch import ObjectRef
from tidemark.storage.log.versions import CHECKPOINT_EVERY, Version
from tidemark.storage.read_many import read_many
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.store import ObjectStore

Root = LedgerRun | ObjectRef


@dataclass
class References:
    """Versions of one store, read once and in order, and what the states from any of them on name.

    A state names what its checkpoint does or a change since has recorded: no state need be folded, and a reference is
    found in whichever field it is. One in a field that is not known is never met: such a version is refused. What files
    contributed counts as named by intervals that begin at `corrected_from` or later.
    """

    store: ObjectStore
    corrected_from: int = 0
    _checkpoints: dict[int, tuple[Root, ...]] = field(default_factory=dict)
    _changes: dict[int, tuple[Root, ...]] = field(default_factory=dict)
    _opened: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, versions: Iterable[Version]) -> None:
        """Take versions that follow those taken before."""
        for version in versions:
            self._changes[version.number] = tuple(roots(version.record.change))
            if version.number % CHECKPOINT_EVERY == 0:
                self._checkpoints[version.number] = tuple(roots(version.record.checkpoint))

    def since(self, oldest: int) -> set[str]:
        """The keys that the states at `oldest` and later name. Corruption if a table they name is not what was
        recorded."""
        whole = self._checkpoints.get(oldest)
        roots = [*(self._changes.get(oldest, ()) if whole is None else whole)]
        roots += (root for number, changed in self._changes.items() if number > oldest for root in changed)
        by_key = {key_of(root): root for root in roots}
        closed = [root for key, root in by_key.items() if key not in self._opened]
        self._opened |= zip(map(key_of, closed), read_many(self._read, closed), strict=True)
        return {named for key in by_key for named in self._opened[key]}

    def _read(self, root: Root) -> frozenset[str]:
        if isinstance(root, LedgerRun):
            named = list(ledger.named_objects(self.store, root, corrected_from=self.corrected_from))
            tables = {ref.key: ref for ref in named if parts_table.is_one(ref)}.values()
            return frozenset(ref.key for ref in named).union(*(self._read(table) for table in tables))
        objects = parts_table.objects(self.store, root) if parts_table.is_one(root) else (root,)
        return frozenset(ref.key for ref in objects)


def key_of(root: Root) -> str:
    """The key of the object that a reference leads to first."""
    return root.key if isinstance(root, ObjectRef) else root.object.key


def roots(value: Any) -> Iterator[Root]:
    """Every reference in a value, at whatever depth; a run of the ledger as a whole."""
    if isinstance(value, Root):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from roots(item)
    elif isinstance(value, dict):
        yield from roots(tuple(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        for name in _names(type(value)):
            yield from roots(getattr(value, name))


@lru_cache(maxsize=256)
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))

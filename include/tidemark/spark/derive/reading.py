"""What a computation asks of its inputs, and of the collection itself; and how much that is at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemark.definition.computation import Computation
from tidemark.definition.recipe import Recipe, WindowAssignment
from tidemark.model.key import Key
from tidemark.plan.read import ReadRequest, at_rest, plan_as_of, plan_changes, plan_updates
from tidemark.plan.size import row_groups, size_of
from tidemark.plan.tasks import KeyRange
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.sidecars import parts_table


def _frozen_after(recipe: Recipe) -> int | None:
    return recipe.in_windows.assignment.frozen_after if recipe.in_windows else None


@dataclass
class Reading:
    """Which columns and updates one computation reads. Rows and bytes of the row groups that were opened for it are
    counted, each once; bytes are those at rest, about."""

    computation: Computation
    rows_read: int = field(default=0, init=False)
    bytes_read: int = field(default=0, init=False)
    _seen: set[tuple[str, int]] = field(default_factory=set, init=False)

    @property
    def sees_event_times(self) -> bool:
        """Whether the input is seen with when its rows happened."""
        return self.computation.recipe is not None and self.computation.recipe.happened

    @property
    def _as_they_are(self) -> bool:
        """Whether a definition sees of an input's rows their columns alone: neither when they happened nor whether they
        came late."""
        recipe = self.computation.recipe
        return recipe is None or not (recipe.happened or _frozen_after(recipe) is not None)

    @property
    def lateness(self) -> WindowAssignment | None:
        """The windows of rows that count for a limited time, where it is judged without Spark which of them do."""
        recipe = self.computation.recipe
        return None if recipe is None or _frozen_after(recipe) is None else recipe.placed

    def used(self, name: str) -> list[str]:
        """The key of an input, and the columns that the definition looks at, in its order."""
        recipe, collection = self.computation.recipe, self.computation.input(name).state.collection
        used = None if recipe is None else recipe.used
        names = [column.name for column in collection.columns]
        if used is None:
            return names
        wanted = {*used[name], *(column.name for column in collection.key)}
        return [one for one in names if one in wanted]

    def rows_changed(self, name: str) -> int:
        """How many updates of an input `changes` gives at most."""
        return self._rows(name, self._changes(name))

    def rows_stored(self, name: str, ranges: Sequence[KeyRange] = ()) -> int:
        """How many updates of an input `Views.rows_of` looks at, at most."""
        asked = self.computation.input(name)
        return self._rows(name, plan_as_of(asked.state, asked.upper - 1), ranges)

    def _rows(self, name: str, request: ReadRequest, ranges: Sequence[KeyRange] = ()) -> int:
        request, parts = parts_table.opened_read(open_store(self.computation.input(name).url), request)
        return size_of(request, parts, ranges)[0]

    def _changes(self, name: str) -> ReadRequest:
        asked = self.computation.input(name)
        if asked.previous is None:
            return plan_updates(asked.state, asked.upper - 1)
        return plan_changes(asked.state, asked.previous - 1, asked.upper - 1)

    @property
    def _stored(self) -> list[str]:
        collection = self.computation.collection
        return [column.name for column in (*collection.columns, *collection.hidden)]

    def groups(self, name: str) -> list[Key]:
        """The first keys of the row groups that hold an input, or the collection itself (by its own name)."""
        own = name == self.computation.name
        asked = None if own else self.computation.input(name)
        request = plan_as_of(asked.state, asked.upper - 1) if asked else plan_updates(self.computation.state)
        opened = at_rest(*parts_table.opened_read(open_store(asked.url if asked else self.computation.url), request))
        return sorted(key for some in opened for part in some.parts for key, _ in part.groups)

    def _opened(self, url: str, request: ReadRequest, ranges: Sequence[KeyRange]) -> ObjectStore:
        """The store at `url`; the row groups that answer the request are counted, each once."""
        store = open_store(url)
        for some in at_rest(*parts_table.opened_read(store, request)):
            for part in some.parts:
                for at, rows, size in row_groups(part, ranges):
                    if (part.file.key, at) not in self._seen:
                        self._seen.add((part.file.key, at))
                        self.rows_read += rows
                        self.bytes_read += size
        return store

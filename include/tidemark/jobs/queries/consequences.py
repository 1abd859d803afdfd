"""What becomes of the collections that are derived from one, directly or not, if its columns change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.definition.recipe import Recipe
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.derived import columns_read, declared_over, over, reads_others, recipe_of, shaped
from tidemark.jobs.job import Job, root_of
from tidemark.jobs.queries.exact_values import check_values
from tidemark.jobs.queries.locate import collections
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection, Column
from tidemark.model.derived import Derived
from tidemark.model.evolution import differences
from tidemark.model.transition.declarations import changed_columns, redeclared
from tidemark.plan.consume import InputState

_Reads = dict[str, tuple[Column, ...]]
"""The columns that a definition reads, by input."""


class Follows(StrEnum):
    """What a derived collection does about a change of its inputs' columns."""

    SAME = "same"
    ITSELF = "follows by itself"
    EDIT = "needs an edit"
    BEHIND = "stays behind"


@dataclass(frozen=True)
class Consequence:
    """What becomes of one derived collection.

    Attributes:
        columns: What becomes of its columns, a line each.
        edit: What to edit, and where; of one that stays behind, the collection that needs an edit.
    """

    collection: str
    follows: Follows
    columns: tuple[str, ...] = ()
    edit: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "words": self.words}

    @property
    def words(self) -> str:
        match self.follows:
            case Follows.SAME:
                return "same"
            case Follows.ITSELF:
                return (
                    f"follows by itself, its next run computes all of it: {'; '.join(self.columns) or 'same columns'}"
                )
            case Follows.EDIT:
                return f"needs an edit: {self.edit}"
            case Follows.BEHIND:
                return f"stays as it is until {self.edit} is edited"


def files_beside(file: str) -> dict[str, DerivedFile]:
    """The files of derived collections in the folder of a file, by collection; wrong ones are left out."""
    files_by_name: dict[str, DerivedFile] = {}
    for path in sorted(Path(file).parent.glob("*.y*ml")):
        try:
            other = parse(path)
        except InvalidUsage:  # its own run says so
            continue
        if isinstance(other, DerivedFile):
            files_by_name[other.name] = other
    return files_by_name


def consequences(job: Job, new: Collection, files: Mapping[str, DerivedFile]) -> tuple[Consequence, ...]:
    """What becomes of all that is derived from a collection, if that gets another declaration.

    A definition is taken from its file, where there is one: an edit that was made already is seen. Types are found by
    Spark, of definitions only that read a column which changed.

    Args:
        new: The collection as it is to be.
        files: Files of derived collections by name.

    Returns:
        One for each derived collection, inputs before what is derived from them.
    """
    return tuple(_Change(job, new, files).consequences())


def explain_change(job: Job, file: str, declared: Collection) -> dict[str, Any]:
    """Find what `init` would change of a collection, and of those derived from it; nothing is committed.

    Args:
        file: The collection's file: those of derived collections are looked for beside it.
        declared: The collection that it declares.

    Raises:
        InvalidUsage: `init` would refuse it for its own rows.
    """
    head = job.log.load()
    if head.arrangement is None:
        return {"collection": declared.name, "version": 0, "columns": [], "derived": []}
    new = redeclared(head.state, declared)
    check_values(job, head.state, new)
    derived = [each.as_dict() for each in consequences(job, new, files_beside(file))]
    columns = changed_columns(head.state, new)
    return {"collection": declared.name, "version": head.version, "columns": columns, "derived": derived}


def check_unbroken(name: str, derived: Sequence[Consequence]) -> None:
    """Raise InvalidUsage if a change of columns of a collection breaks one that is derived from it."""
    broken = [f"{each.collection} {each.words}" for each in derived if each.follows is Follows.EDIT]
    if broken:
        raise InvalidUsage(
            f"this change of {name} breaks what is derived from it: {'; '.join(broken)}. Edit that first, or run "
            "`tidemark init FILE --break-derived`"
        )


class _Change:
    """One question: the states of all collections, and those that are to be others."""

    def __init__(self, job: Job, new: Collection, files: Mapping[str, DerivedFile]) -> None:
        self.job, self.name, self.files = job, new.name, files
        names = job.all_names() if job.all_names else collections(root_of(job.store.url))
        self.states = {name: state for name in names if (state := self._state(name)) is not None}
        self.changed = {new.name: new}
        self.edited: list[str] = []

    def consequences(self) -> Iterator[Consequence]:
        for name in self._in_order():
            consequence = self._consequence(name)
            if consequence.follows in (Follows.EDIT, Follows.BEHIND):
                self.edited.append(name)
            yield consequence

    def _state(self, name: str) -> Arrangement | None:
        try:
            return self.job.neighbour(name).log.load().arrangement
        except TidemarkError as error:
            self.job.note(f"whether {name} is derived from {self.name} is not known: {error}")
            return None

    def _in_order(self) -> Sequence[str]:
        """What is derived from the collection, each after its inputs."""
        inputs = {
            name: state.collection.derived.inputs
            for name, state in self.states.items()
            if state.collection.is_derived and name != self.name
        }
        ordered: list[str] = []
        reached = {self.name}
        while more := {name for name in inputs.keys() - reached if not reached.isdisjoint(inputs[name])}:
            reached |= more
        left = reached - {self.name}
        while ready := sorted(name for name in left if left.isdisjoint(inputs[name])):
            ordered += ready
            left -= {*ready}
        return ordered

    def _consequence(self, name: str) -> Consequence:
        state = self.states[name]
        inputs = state.collection.derived.inputs
        if behind := [each for each in self.edited if each in inputs]:
            return Consequence(name, Follows.BEHIND, edit=behind[0])
        if self.changed.keys().isdisjoint(inputs):
            return Consequence(name, Follows.SAME)
        reads = self._reads(state.collection.derived)
        try:
            following = self._following(name, state, reads)
        except InvalidUsage as error:
            return Consequence(name, Follows.EDIT, edit="; ".join(self._hints(reads)) or str(error))
        if following is None:
            return Consequence(name, Follows.SAME)
        if renamed := self._renamed_by_star(state.collection, following, reads):
            return Consequence(name, Follows.EDIT, edit=f"write columns: {{{renamed}}} in its file")
        if following.columns != state.collection.columns:
            self.changed[name] = following
        return Consequence(name, Follows.ITSELF, tuple(differences(state.collection, following)))

    def _following(self, name: str, state: Arrangement, reads: _Reads) -> Collection | None:
        """The collection as it follows; None if it reads nothing that changed. InvalidUsage if it cannot follow."""
        file = self.files.get(name)
        derived = state.collection.derived if file is None else file.origin
        after = self._inputs(derived, self.changed)
        recipe = recipe_of(derived, after)
        same = reads == _reads(recipe, after) or not reads_others(state.collection, recipe, after)
        if same and derived.fingerprint == state.collection.derived.fingerprint:
            return None
        shape = shaped(self.job, name, derived, after)
        new = over(state, shape) if file is None else redeclared(state, declared_over(file, shape, state))
        check_values(self.job.neighbour(name), state, new)
        return new

    def _inputs(self, derived: Derived, changed: Mapping[str, Collection]) -> tuple[InputState, ...]:
        """The inputs, those that changed as they are to be."""
        inputs = []
        for name in derived.inputs:
            state = self.states.get(name)
            if state is not None and name in changed:
                state = replace(state, collection=changed[name])
            inputs.append(InputState(name, state, 0))
        return tuple(inputs)

    def _reads(self, derived: Derived) -> _Reads:
        """The columns that a definition reads today; none where its inputs do not fit it even now."""
        inputs = self._inputs(derived, {})
        try:
            return _reads(recipe_of(derived, inputs), inputs)
        except InvalidUsage:
            return {}

    def _hints(self, reads: _Reads) -> Iterator[str]:
        """What to write for columns that a definition reads and that are called otherwise, or are gone."""
        for name, columns in reads.items():
            now = {column.id: column.name for column in self.changed[name].columns} if name in self.changed else None
            for column in () if now is None else columns:
                called = now.get(column.id) if now is not None else column.name
                if called is None:
                    yield f"{name} has no {column.name} any more, leave it out of the definition"
                elif called != column.name:
                    yield (
                        f"{name} calls {column.name} {called} now, write {called} for it in the definition, and "
                        f"{called} AS {column.name} where it is a column of the result"
                    )

    def _renamed_by_star(self, current: Collection, following: Collection, reads: _Reads) -> str:
        """What keeps the values of columns that `SELECT *` shows, and that an input calls otherwise; "" if none are."""
        before, after = ({column.id: column.name for column in each.value} for each in (current, following))
        gone = {name for number, name in before.items() if number not in after}
        added = {name for number, name in after.items() if number not in before}
        old_names: dict[str, str] = {}
        for name in reads.keys() & self.changed.keys():
            now = {column.id: column.name for column in self.changed[name].columns}
            old_names |= {now[column.id]: column.name for column in reads[name] if column.id in now}
        pairs = [(new, old_names[new]) for new in sorted(added & old_names.keys())]
        pairs = [(new, old) for new, old in pairs if old in gone]
        return ", ".join(f"{new}: {{was: {old}}}" for new, old in pairs)


def _reads(recipe: Recipe | None, inputs: Sequence[InputState]) -> _Reads:
    return {
        source.name: columns_read(recipe, source.name, source.state.collection)
        for source in inputs
        if source.state is not None
    }

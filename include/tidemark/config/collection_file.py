"""Collection files: one YAML file declares one collection.

    declared = load("include/collections/flights.yaml")             # types declared in the file
    file = parse(path); file.undeclared                             # columns whose type the file leaves open
    load(path, types=infer_types(path, first_source_file))          # inferred once, at `init`, then frozen
    parse(path).inputs                                              # of a derived one (config/derived_file.py)

A wrong file is refused as InvalidUsage in one line: path, line, what is wrong, the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tidemark.config import columns, debezium, derived_file, document, full_snapshots
from tidemark.config.build import Builder
from tidemark.config.declaration import Declaration, DerivedDeclaration
from tidemark.config.declared_file import DeclaredFile
from tidemark.config.derived_file import DerivedFile
from tidemark.config.document import Document, Loc
from tidemark.config.nearest import nearest
from tidemark.config.origin import is_derived, misplaced
from tidemark.config.refusal import refused
from tidemark.errors import InvalidUsage, shortened
from tidemark.model import only
from tidemark.model.collection import Collection, ColumnType, ValueType
from tidemark.model.condition import text, tree

if TYPE_CHECKING:
    from tidemark.config.infer import Inferred

MAX_MESSAGE = 1000
"""Characters of a refusal."""


@dataclass(frozen=True)
class CollectionFile(DeclaredFile[Declaration]):
    """The file of a landed collection, valid in itself. What it lacks to be a Collection are the types of
    `undeclared` columns."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns read from the source, each once, the diff excepted: key, value, then the others."""
        declared = self.declaration
        coordinates = [declared.time_column, declared.event_time_column, *declared.source.order_columns]
        others = [*coordinates, *self._condition_columns, *only.fields(declared.source.only)]
        names = [*declared.key, *declared.value, *(name for name in others if name)]
        return tuple(dict.fromkeys(names))

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The columns `columns:` says no type for, in order. Time and order_by columns are timestamps unless it does,
        as soon as it says anything."""
        declared = self.declaration
        order_by = declared.source.order_by
        coordinates = {declared.time_column, declared.event_time_column}
        if isinstance(order_by, str):
            coordinates |= {*declared.source.order_columns}
        stored = {*declared.key, *declared.value}
        if declared.source.envelope == debezium.DEBEZIUM and not declared.types:
            coordinates -= {*declared.source.order_columns}  # times are numbers there, and what they count is known
        elif not declared.types:
            coordinates = set()
        if declared.source.envelope == debezium.DEBEZIUM:
            coordinates |= {*only.fields(declared.source.only)}  # of the type that it compares them with
        implied = (coordinates - stored) | {name for name, column in declared.columns.items() if column.from_path}
        return tuple(name for name in self.columns if name not in declared.types and name not in implied)

    @property
    def _condition_columns(self) -> tuple[str, ...]:
        written = self.declaration.source.delete_when
        return tree.columns(text.parse(written)) if written else ()

    def collection(self, types: Mapping[str, ValueType] | None = None) -> Collection:
        """The collection declared, with `types` for columns the file leaves open. InvalidUsage if any stays open."""
        with _one_line_of(self.path):
            return self._collection(types)

    def _collection(self, types: Mapping[str, ValueType] | None) -> Collection:
        declared = self.declaration
        in_path = (name for name, column in declared.columns.items() if column.from_path)
        known = {**dict.fromkeys(in_path, ColumnType.STRING), **(types or {}), **declared.types}
        if missing := [name for name in self.undeclared if name not in known]:
            raise self.refusal(
                ("columns",) if declared.columns else ("key",),
                f"no type for column {missing[0]}; write columns: {{{missing[0]}: string}}, "
                "or give `init` a file to infer types from",
            )
        return Builder(declared, self.columns, known, self.refusal).build()


def parse(path: str | Path) -> CollectionFile | DerivedFile:
    """Read a collection file and check all that needs no types. Raises InvalidUsage in one line, whatever it holds."""
    with _one_line_of(path):
        return _parsed(path)


def parse_landed(path: str | Path) -> CollectionFile:
    """As `parse`, of a file whose rows land. InvalidUsage for one of a derived collection."""
    file = parse(path)
    if isinstance(file, DerivedFile):
        raise file.refusal(
            ("from",), f"{file.name} is derived: what its columns are, its inputs say; run `tidemark init {path}`"
        )
    return file


def _parsed(path: str | Path) -> CollectionFile | DerivedFile:
    read = document.read(path)
    if not isinstance(read.content, dict):
        raise InvalidUsage(f"{path}:1: a collection file is a mapping that starts with name: ...")
    if wrong := misplaced(read.content):
        raise InvalidUsage(f"{path}:{read.line(wrong[0])}: {wrong[1]}")
    return _derived(path, read) if is_derived(read.content) else _landed(path, read)


def _landed(path: str | Path, read: Document) -> CollectionFile:
    try:
        declared = Declaration.model_validate(full_snapshots.with_time(read.content))
    except ValidationError as error:
        raise refused(read, error) from None
    if wrong := columns.condition_problem(declared):
        raise InvalidUsage(f"{path}:{read.line(wrong[0])}: {wrong[1]}")
    file = CollectionFile(str(path), declared, read)
    if wrong := columns.problem(declared, file.columns):
        raise file.refusal(*wrong)
    return file


def _derived(path: str | Path, read: Document) -> DerivedFile:
    try:
        declared = DerivedDeclaration.model_validate(read.content)
    except ValidationError as error:
        raise refused(read, error, DerivedDeclaration) from None
    file = DerivedFile(str(path), declared, read)
    if wrong := derived_file.problem(declared):
        raise file.refusal(*wrong)
    return file


def load(path: str | Path, *, types: Mapping[str, ValueType] | None = None) -> Collection:
    """The collection a file declares; `types` are those inferred at `init`, for columns the file leaves open.

    Raises InvalidUsage in one line for a wrong file, and for one of a derived collection, whose columns no file knows.
    """
    return parse_landed(path).collection(types)


def infer_types(path: str | Path, first_source_file: str) -> dict[str, ValueType]:
    """Types for the columns a collection file leaves open, as the first source file has them.

    Raises InvalidUsage for a file that cannot be read, a column it lacks, or one whose type it does not show.
    """
    return {name: column.type for name, column in infer_columns(path, first_source_file).items()}


def infer_columns(path: str | Path, first_source_file: str) -> dict[str, Inferred]:
    """As `infer_types`, with the reason of each type."""
    from tidemark.config.infer import Taken, inferred

    file = parse_landed(path)
    declared = file.declaration
    places, condition = debezium.places(declared, file.undeclared), declared.source.only
    taken = Taken(only.parsed(condition), debezium.places(declared, only.fields(condition))) if condition else None
    try:
        types = inferred(first_source_file, declared.source.as_written, places, taken)
    except InvalidUsage as error:
        raise debezium.another_table(declared, first_source_file) or error from None
    return debezium.inferred_types(declared, types, first_source_file)


def wrong_coordinate(file: CollectionFile, source_file: str) -> InvalidUsage | None:
    """Find a column that says when rows are, in which order or on which timeline, and that a source file does not have.

    Returns:
        The refusal, at the field's line and with the nearest name that the file has; None if it has all of them.

    Raises:
        InvalidUsage: The file cannot be read.
    """
    from tidemark.arrow.decode.messages import FLATTENED, flattened
    from tidemark.config.infer import lacking

    declared = file.declaration
    named: list[tuple[Loc, str | None]] = [(("timelines", at), name) for at, name in enumerate(declared.timelines)]
    named += [(("source", "order_by"), name) for name in declared.source.order_columns]
    named += [(("source", "only"), name) for name in only.fields(declared.source.only)]
    named += [(("event_time", "column"), declared.event_time_column), (("time", "column"), declared.time_column)]
    columns = declared.columns
    may_lack = {name for name, column in columns.items() if column.optional or column.from_path}
    locs: dict[str, Loc] = {name: loc for loc, name in named if name and name not in may_lack}
    wrong = lacking(source_file, declared.source.as_written, debezium.places(declared, locs))
    if wrong is None:
        return None
    name, has = wrong
    if declared.source.envelope == debezium.DEBEZIUM and (other := debezium.no_messages(declared, source_file)):
        return file.refusal(("source", "envelope"), other)
    if declared.source.envelope == debezium.DEBEZIUM and (instead := flattened(has)):
        return file.refusal(("source", "envelope"), f"{source_file} has no messages: {FLATTENED}{instead}")
    return file.refusal(locs[name], f"{source_file} has no column {name}{nearest(name, has)}")


@contextmanager
def _one_line_of(path: str | Path) -> Iterator[None]:
    """Whatever reading a file ends in becomes one line that names it: a wrong file is nobody else's trouble."""
    try:
        yield
    except InvalidUsage as error:
        raise InvalidUsage(_line(str(error))) from None
    except Exception as error:  # MemoryError and RecursionError among them: the file asked for too much
        said = " ".join(str(error).split())
        raise InvalidUsage(_line(f"{path}:1: cannot be read: {type(error).__name__}: {said}")) from None


def _line(message: str) -> str:
    """An error shows what a file holds, and a file may hold a million characters in a row."""
    return shortened(" ".join(message.splitlines()), MAX_MESSAGE)

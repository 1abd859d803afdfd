"""Collection files: one YAML file declares one collection.

    declared = load("include/collections/flights.yaml")             # types declared in the file
    file = parse(path); file.undeclared                             # columns whose type the file leaves open
    load(path, types=infer_types(path, first_source_file))          # inferred once, at `init`, then frozen

A wrong file is refused as InvalidUsage in one line: path, line, what is wrong, the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tidemark.config import document, dumps, messages
from tidemark.config.build import Builder
from tidemark.config.declaration import Declaration
from tidemark.config.document import Document, Loc
from tidemark.config.refusal import nearest, refused
from tidemark.errors import InvalidUsage
from tidemark.model import predicate
from tidemark.model.collection import Collection, ColumnType

NOT_YET = {
    "windows": "windows are",
    "reprocess_for": "re-reading past files is",
    "valid_for": "temporal filters are",
    "batching": "batching windows are",
    "chunks": "chunks are",
}
"""Sections of later versions, refused by name so that nobody believes them to work."""


@dataclass(frozen=True)
class CollectionFile:
    """A collection file, valid in itself. What it lacks to be a Collection are the types of `undeclared` columns."""

    path: str
    declaration: Declaration
    document: Document

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns read from the source, each once, the diff excepted: key, value, then the others."""
        declared = self.declaration
        others = [declared.time_column, declared.event_time_column, declared.source.order_by, *self._condition_columns]
        names = [*declared.key, *declared.value, *(name for name in others if name)]
        return tuple(dict.fromkeys(names))

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The columns `columns:` says no type for, in order. Time and order_by columns are timestamps unless it does,
        as soon as it says anything."""
        declared = self.declaration
        coordinates = {declared.time_column, declared.event_time_column, declared.source.order_by}
        stored = {*declared.key, *declared.value}
        if declared.source.envelope == messages.DEBEZIUM and not declared.types:
            coordinates -= {declared.source.order_by}  # times are numbers there, and what they count is known
        elif not declared.types:
            coordinates = set()
        implied = coordinates - stored
        return tuple(name for name in self.columns if name not in declared.types and name not in implied)

    @property
    def _condition_columns(self) -> tuple[str, ...]:
        text = self.declaration.source.delete_when
        return predicate.columns(predicate.parse(text)) if text else ()

    def collection(self, types: Mapping[str, ColumnType] | None = None) -> Collection:
        """The collection declared, with `types` for columns the file leaves open. InvalidUsage if any stays open."""
        declared = self.declaration
        known = {**(types or {}), **declared.types}
        if missing := [name for name in self.undeclared if name not in known]:
            raise self.refusal(
                ("columns",) if declared.columns else ("key",),
                f"no type for column {missing[0]}; write columns: {{{missing[0]}: string}}, "
                "or give `init` a file to infer types from",
            )
        return Builder(self, known).build()

    def refusal(self, loc: Loc, message: str) -> InvalidUsage:
        """The error for what stands at `loc`."""
        return InvalidUsage(f"{self.path}:{self.document.line(loc)}: {message}")


def parse(path: str | Path) -> CollectionFile:
    """Read a collection file and check all that needs no types. Raises InvalidUsage."""
    read = document.read(path)
    if not isinstance(read.content, dict):
        raise InvalidUsage(f"{path}:1: a collection file is a mapping that starts with name: ...")
    for field, what in NOT_YET.items():
        if field in read.content:
            line = read.line((field,))
            raise InvalidUsage(f"{path}:{line}: {field}: {what} not supported by this version; remove it")
    try:
        declared = Declaration.model_validate(dumps.with_time(read.content))
    except ValidationError as error:
        raise refused(read, error) from None
    file = CollectionFile(str(path), declared, read)
    _check_columns(file)
    return file


def load(path: str | Path, *, types: Mapping[str, ColumnType] | None = None) -> Collection:
    """The collection a file declares; `types` are those inferred at `init`, for columns the file leaves open.

    Raises InvalidUsage in one line for a wrong file.
    """
    return parse(path).collection(types)


def load_all(folder: str | Path) -> dict[str, Collection | InvalidUsage]:
    """Every `*.yaml` and `*.yml` of a folder by the name it declares; a wrong file by its file name, as its error.

    One wrong file does not hide the others. A name declared twice is an error of the second file.
    """
    found: dict[str, Collection | InvalidUsage] = {}
    root = Path(folder)
    if not root.is_dir():
        raise InvalidUsage(f"{folder} is not a folder of collection files")
    for path in sorted([*root.glob("*.yaml"), *root.glob("*.yml")]):
        try:
            collection = load(path)
            if collection.name in found:
                raise InvalidUsage(f"{path}:1: another file declares a collection {collection.name} too; rename one")
            found[collection.name] = collection
        except InvalidUsage as error:
            found[path.name] = error
    return found


def infer_types(path: str | Path, first_source_file: str) -> dict[str, ColumnType]:
    """Types for the columns a collection file leaves open, as the first source file has them.

    Raises InvalidUsage for a file that cannot be read, a column it lacks, or one whose type it does not show.
    """
    from tidemark.config.infer import inferred

    file = parse(path)
    declared = file.declaration
    places = messages.places(declared, file.undeclared)
    return messages.inferred_types(declared, inferred(first_source_file, declared.source.file_format, places))


def _check_columns(file: CollectionFile) -> None:
    """What the fields say about each other's columns."""
    declared = file.declaration
    if wrong := messages.problem(declared) or dumps.problem(declared):
        raise file.refusal(*wrong)
    if declared.source.delete_when:
        try:
            predicate.parse(declared.source.delete_when)
        except InvalidUsage as error:
            raise file.refusal(("source", "delete_when"), str(error)) from None
    names = [*declared.key, *declared.value]
    for at, name in enumerate(names):
        if name in names[:at]:
            loc = ("key", at) if at < len(declared.key) else ("value", at - len(declared.key))
            raise file.refusal(loc, f"column {name} is named twice in key and value")
    for name in declared.columns:
        if name not in file.columns:
            near = nearest(name, file.columns)
            raise file.refusal(("columns", name), f"column {name} is in no other field{near}")
    for name, was in declared.renames.items():
        if name not in declared.value:
            raise file.refusal(("columns", name), f"column {name} is not a value column; only those are renamed by was")
        others = [new for new, old in declared.renames.items() if old == was and new != name]
        if was == name or others:
            twice = others[0] if others else name
            raise file.refusal(("columns", name), f"column {name} was {was}, and {twice} too; correct was")
    for at, name in enumerate(declared.timelines):
        if name not in declared.value:
            near = nearest(name, declared.value)
            raise file.refusal(("timelines", at), f"timeline {name} is not a value column{near}")

"""The collection files of a folder: the right ones as places, the wrong ones as a line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.airflow.definitions import wrong_definitions
from tidemark.airflow.location import Location, location_of
from tidemark.airflow.parsing import collections_folder
from tidemark.config.folder import files_declaring, files_of, printable
from tidemark.errors import InvalidUsage

MAINTENANCE, OVERDUE = "tidemark_maintenance", "tidemark_overdue"
"""The DAG ids that are no collection's."""


def right_collections(folder: str | Path | None = None) -> list[Location]:
    """The collections of a folder's right files (TIDEMARK_COLLECTIONS), in the files' order."""
    return list(_read(folder).locations.values())


def fitting_collections(folder: str | Path | None = None) -> list[Location]:
    """As `right_collections`, without those whose definition does not fit its inputs: what `explain` refuses."""
    return list(_fitting(folder).locations.values())


def collection_named(name: str, folder: str | Path | None = None) -> Location | None:
    """The collection of this name among the right files of a folder (TIDEMARK_COLLECTIONS); None if there is none.

    Only files with a line `name: NAME` are parsed, and all of them where none of these is the collection's. Whether a
    derived collection's inputs are there, and its definition fits them, is left to its task.
    """
    for file in files_declaring(name, collections_folder(folder)):
        try:
            location = _location(file)
        except Exception:  # a wrong file, which `check_collection_files` reports
            continue
        if location.name == name:
            return location
    return next((one for one in right_collections(folder) if one.name == name), None)


def is_declared(name: str, folder: str | Path | None = None) -> bool:
    """Whether a file of a folder (TIDEMARK_COLLECTIONS) says that it declares this collection, right or wrong."""
    return next(files_declaring(name, collections_folder(folder)), None) is not None


def check_collection_files(folder: str | Path | None = None) -> None:
    """Raise InvalidUsage with one line for each wrong collection file of a folder: file, line and the nearest field;
    also for each whose definition does not fit its inputs, and for each function a file names that cannot be called,
    whose DAG is made all the same.

    For a DAG file of its own. An exception in a DAG file becomes its import error in the UI, and Airflow then stops
    scheduling *every* DAG of that file: the file that complains must not be the one that holds the DAGs.
    """
    found = _fitting(folder)
    if errors := {**_wrong_names(found), **found.errors}:
        raise InvalidUsage("\n".join(errors[file] for file in sorted(errors)))


def _wrong_names(found: _Found) -> dict[Path, str]:
    """A line for each file that names a function which cannot be called: the first of them. Imports what they name."""
    from tidemark.airflow.calls import names_anything, wrong_names
    from tidemark.config.collection_file import parse

    errors = {}
    for name, location in found.locations.items():
        if names_anything(location) and (wrong := next(wrong_names(location), None)):
            loc, error = wrong
            file = found.files[name]
            errors[file] = _line(file, str(parse(file).refusal(loc, f"{'.'.join(map(str, loc[:-1]))}: {error}")))
    return errors


@dataclass
class _Found:
    """The collections of a folder's files by name, in the files' order; the file of each; a line for each wrong file,
    or for the folder where that cannot be listed."""

    locations: dict[str, Location] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    errors: dict[Path, str] = field(default_factory=dict)

    def leave_out(self, wrong: Mapping[str, InvalidUsage]) -> None:
        """Leave collections out, each with a line that says why."""
        for name, error in wrong.items():
            del self.locations[name]
            self.errors[self.files[name]] = _line(self.files[name], str(error))


def _fitting(folder: str | Path | None) -> _Found:
    """As `_read`; a definition that does not fit its inputs is a line of its file, too."""
    found = _read(folder)
    found.leave_out(wrong_definitions(list(found.locations.values())))
    return found


def _read(folder: str | Path | None) -> _Found:
    """The collections of a folder's files, and one line for each file that is wrong.

    Whatever a file brings about is that file's line: one that is wrong in a way nobody thought of is no worse. Inputs
    of derived collections are checked against all files, wrong ones too, as far as these say a name.
    """
    found = _Found()
    folder = collections_folder(folder)
    try:
        files = files_of(folder)
    except InvalidUsage as error:
        found.errors[folder] = str(error)
        return found
    for file in files:
        try:
            location = _location(file)
            if other := found.locations.get(location.name):
                raise InvalidUsage(f"collection {location.name} is declared by {other.file} already; rename one")
        except InvalidUsage as error:
            found.errors[file] = _line(file, str(error))
        except Exception as error:
            found.errors[file] = _line(file, f"cannot be read: {type(error).__name__}: {error}")
        else:
            found.locations[location.name], found.files[location.name] = location, file
    found.leave_out(_wrong_inputs(list(found.locations.values()), list(found.errors)))
    return found


def _wrong_inputs(locations: list[Location], wrong_files: list[Path]) -> dict[str, InvalidUsage]:
    """What is wrong about inputs, by collection."""
    from tidemark.config.derived_file import DerivedFile

    derived = [location.declared for location in locations if isinstance(location.declared, DerivedFile)]
    if not derived:
        return {}
    from tidemark.config.inputs import wrong_inputs

    others = [location.name for location in locations]
    return wrong_inputs(derived, [*others, *(_name_in(file) for file in wrong_files)])


def _name_in(file: Path) -> str:
    """The name a wrong file gives its collection; else its own."""
    from tidemark.config.document import read

    try:
        content = read(file).content
    except InvalidUsage:
        content = None
    return str(content["name"]) if isinstance(content, dict) and "name" in content else file.stem


def _location(file: Path) -> Location:
    if printable(file.name) != file.name:
        raise InvalidUsage("the file's name holds what is no text, or no printable one; rename it")
    location = location_of(file)
    if location.name in (MAINTENANCE, OVERDUE):
        raise InvalidUsage(f"the DAG {location.name} looks after all collections; call this one otherwise")
    return location


def _line(file: Path, said: str) -> str:
    line = printable(said)
    return line if line.startswith(printable(file)) else f"{printable(file)}: {line}"

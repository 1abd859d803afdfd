"""The collection files of a folder: the right ones as places, the wrong ones as a line each."""

from __future__ import annotations

from pathlib import Path

from tidemark.airflow import settings
from tidemark.airflow.location import Location, location_of
from tidemark.errors import InvalidUsage

SUFFIXES = (".yaml", ".yml")
MAINTENANCE = "tidemark_maintenance"
"""The DAG id that is not a collection's."""


def right_collections(folder: str | Path | None = None) -> list[Location]:
    """The collections of a folder's right files (TIDEMARK_COLLECTIONS), in the files' order."""
    locations, _ = _read(folder)
    return locations


def check_collection_files(folder: str | Path | None = None) -> None:
    """Raise InvalidUsage with one line for each wrong collection file of a folder: file, line and the nearest field.

    For a DAG file of its own. An exception in a DAG file becomes its import error in the UI, and Airflow then stops
    scheduling *every* DAG of that file: the file that complains must not be the one that holds the DAGs.
    """
    _, errors = _read(folder)
    if errors:
        raise InvalidUsage("\n".join(errors))


def files_of(folder: Path) -> list[Path]:
    """The collection files of a folder, by name. InvalidUsage if it cannot be listed; none if it is not there."""
    if not folder.is_dir():
        return []
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except OSError as error:
        raise InvalidUsage(f"{printable(folder)}: cannot be listed: {error.strerror}") from None


def printable(path: str | Path) -> str:
    """A path as any log, page and database takes it: on one line, in Unicode."""
    text = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _read(folder: str | Path | None) -> tuple[list[Location], list[str]]:
    """The collections of a folder's files, and one line for each file that is wrong, both in the files' order.

    Whatever a file brings about is that file's line: one that is wrong in a way nobody thought of is no worse. Inputs
    of derived collections are held against all files, wrong ones too, as far as these say a name.
    """
    locations: dict[str, Location] = {}
    errors: dict[Path, str] = {}
    try:
        files = files_of(Path(folder or settings.collections_folder()))
    except InvalidUsage as error:
        return [], [str(error)]
    of: dict[str, Path] = {}
    for file in files:
        try:
            location = _location(file)
            if other := locations.get(location.name):
                raise InvalidUsage(f"collection {location.name} is declared by {other.file} already; rename one")
        except InvalidUsage as error:
            errors[file] = _line(file, str(error))
        except Exception as error:
            errors[file] = _line(file, f"cannot be read: {type(error).__name__}: {error}")
        else:
            locations[location.name], of[location.name] = location, file
    for name, wrong in _wrong_inputs(list(locations.values()), list(errors)).items():
        del locations[name]
        errors[of[name]] = _line(of[name], str(wrong))
    return list(locations.values()), [errors[file] for file in files if file in errors]


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
    if location.name == MAINTENANCE:
        raise InvalidUsage(f"the DAG {MAINTENANCE} looks after all collections; call this one otherwise")
    return location


def _line(file: Path, said: str) -> str:
    line = printable(said)
    return line if line.startswith(printable(file)) else f"{printable(file)}: {line}"

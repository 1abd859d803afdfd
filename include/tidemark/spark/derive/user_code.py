"""Where definitions in Python are: in one folder, and nowhere else, whatever else Python would find by that name.

The folder is TIDEMARK_DEFINITIONS, else `definitions` beside the package `tidemark`: `include/definitions` in the
project, and in the zip that is made of it. Its modules belong to the package `definitions`, so that one may import
another.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tidemark.errors import InvalidUsage
from tidemark.model.derived import Definition
from tidemark.resident.server_folder import PACKAGE

FOLDER = "definitions"
"""What the package is called."""


def place() -> str:
    """The folder of definitions in Python."""
    chosen = os.environ.get("TIDEMARK_DEFINITIONS")
    return str(Path(chosen).resolve()) if chosen else str(PACKAGE.parent / FOLDER)


def file_of(name: str, definition: Definition) -> str:
    """The file with the definition of a collection, by looking for it only. InvalidUsage if it is not there."""
    module = definition.function.partition(":")[0]
    *folders, last = module.split(".")
    invalidate_caches()
    spec = PathFinder.find_spec(last, [str(Path(place(), *folders))])
    if spec is None or spec.origin is None:
        raise InvalidUsage(
            f"the definition of {name} is {definition.function}, and there is no {Path(place(), *folders, last)}.py; "
            "TIDEMARK_DEFINITIONS says in which folder it is looked for"
        )
    return spec.origin


def module_of(name: str, definition: Definition) -> ModuleType:
    """The module with the definition of a collection, of the file that `file_of` says. Raises what importing it raises,
    and InvalidUsage if it is not there."""
    file_of(name, definition)
    package()
    return import_module(f"{FOLDER}.{definition.function.partition(':')[0]}")


def package() -> ModuleType:
    """The package of all definitions in Python. InvalidUsage if another one of its name was imported by then."""
    at, found = place(), sys.modules.get(FOLDER)
    if found is not None and getattr(found, "__tidemark__", None) is None:
        raise InvalidUsage(
            f"definitions in Python are in {at}, and another package {FOLDER} was imported already, from "
            f"{getattr(found, '__file__', None) or next(iter(getattr(found, '__path__', ())), 'nowhere')}; remove that"
        )
    if found is not None and found.__tidemark__ == at:
        return found
    for loaded in [each for each in sys.modules if each.partition(".")[0] == FOLDER]:
        del sys.modules[loaded]  # of another folder
    spec = _spec_of(at)
    made = module_from_spec(spec)
    made.__tidemark__ = at  # type: ignore[attr-defined]
    sys.modules[FOLDER] = made
    if spec.loader is not None:
        spec.loader.exec_module(made)
    return made


def _spec_of(at: str) -> ModuleSpec:
    """The package in a folder, with an `__init__.py` or without. Its path is that folder: left to itself, one without
    would be of all folders of its name that Python finds."""
    above, called = os.path.split(at)
    spec = PathFinder.find_spec(FOLDER, [above]) if called == FOLDER else None  # a zip has no other way
    if spec is None and (init := Path(at, "__init__.py")).is_file():
        spec = spec_from_file_location(FOLDER, init)
    if spec is None or spec.loader is None or spec.origin is None:
        spec = ModuleSpec(FOLDER, None, is_package=True)
    spec.submodule_search_locations = [at]
    return spec

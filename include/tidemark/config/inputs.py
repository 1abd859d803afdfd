"""What the files of a folder say of each other: every input is declared there, and no collection is made of itself."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence

from tidemark.config.collection_file import CollectionFile
from tidemark.config.derived_file import DerivedFile
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage

MOST_SHOWN = 8
"""Names of a cycle that are written out."""


def wrong_inputs(files: Sequence[CollectionFile | DerivedFile], others: Names[str] = ()) -> dict[str, InvalidUsage]:
    """What is wrong about the inputs of a folder's files, by name of the collection: one that nothing declares, or a
    cycle, which is refused in each file that is part of it. Files that only read a cycle stay.

    `others` are names that are declared elsewhere, or in files that are wrong themselves: theirs are no unknown inputs.
    """
    derived = {file.name: file for file in files if isinstance(file, DerivedFile)}
    known = sorted({*(file.name for file in files), *others})
    wrong: dict[str, InvalidUsage] = {}
    for file in derived.values():
        unknown = next((name for name in file.inputs if name not in known), None)
        if unknown is not None:
            valid = [name for name in known if name != file.name]
            wrong[file.name] = file.refusal(
                file.line_of_input(unknown), f"from: no file declares the collection {unknown}{nearest(unknown, valid)}"
            )
    inputs = {name: [one for one in file.inputs if one in derived] for name, file in derived.items()}
    for name, file in derived.items():
        if name not in wrong and (cycle := _back_to(name, inputs)):
            wrong[name] = file.refusal(
                file.line_of_input(cycle[1]), f"from: {_shown(cycle)}: no collection is computed from itself"
            )
    return wrong


def _back_to(start: str, inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way along inputs from a collection back to it; empty if there is none."""
    came_from: dict[str, str] = {}
    reached = [start]
    for name in reached:  # grows: breadth first
        for one in inputs[name]:
            if one == start:
                return [start, *_way(start, name, came_from), start]
            if one not in came_from:
                came_from[one] = name
                reached.append(one)
    return []


def _way(start: str, name: str, came_from: Mapping[str, str]) -> list[str]:
    way: list[str] = []
    while name != start:
        way.append(name)
        name = came_from[name]
    return way[::-1]


def _shown(cycle: Sequence[str]) -> str:
    middle = [*cycle[: MOST_SHOWN - 1], "…", cycle[-1]] if len(cycle) > MOST_SHOWN else cycle
    return " is computed from ".join([middle[0], ", that from ".join(middle[1:])])

"""Definitions that do not fit their inputs, as the files of a folder declare both. No store and no Spark is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.airflow.location import Location
from tidemark.errors import InvalidUsage

if TYPE_CHECKING:
    from tidemark.config.derived_file import DerivedFile
    from tidemark.plan.consume import InputState

MOST_EFFORT = 2_500
"""Nodes of a definition that is analysed whenever DAG files are parsed: some 0.1 CPU seconds. Real ones have some
hundreds, and take 10 ms. `tidemark explain`, `init` and the first run analyse the larger ones, too."""


def wrong_definitions(locations: Sequence[Location]) -> dict[str, InvalidUsage]:
    """What `tidemark explain` refuses of the derived collections of a folder, by name of the collection.

    A definition is looked at where all its inputs land, and are right themselves: the columns of one that is computed
    are known once Spark has analysed it.
    """
    from tidemark.config.derived_file import DerivedFile

    derived = [one.declared for one in locations if isinstance(one.declared, DerivedFile)]
    if not derived:
        return {}
    from tidemark.model.arrangement import Arrangement
    from tidemark.plan.consume import InputState

    landed = [one.collection for one in locations if one.derived is None]
    states = {one.name: InputState(one.name, Arrangement(one), 0) for one in landed}
    found = {}
    for file in derived:
        inputs = [states[name] for name in file.inputs if name in states]
        if len(inputs) == len(file.inputs) and (wrong := _wrong(file, inputs)) is not None:
            found[file.name] = wrong
    return found


def _wrong(file: DerivedFile, inputs: Sequence[InputState]) -> InvalidUsage | None:
    from tidemark.definition.effort import effort
    from tidemark.jobs.derived import recipe_of_file

    try:
        if effort(file.origin.definition) <= MOST_EFFORT:
            recipe_of_file(file, inputs)
    except InvalidUsage as error:
        return error
    except Exception as error:  # whatever a file brings about is that file's line
        return file.refusal(file.line_of_definition, f"cannot be analysed: {type(error).__name__}: {error}")
    return None

"""Which of its inputs' columns a definition looks at: no other ones need be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from tidemark.definition.functions import name_of
from tidemark.definition.recipe import InputShape


def used_columns(query: exp.Expr, shapes: Iterable[InputShape]) -> Mapping[str, tuple[str, ...]]:
    """By input, those of its columns whose name is anywhere in a resolved query, whatever it names there: more than are
    needed maybe, never fewer. All of them, where a star stands for columns still."""
    names = {one.name.lower() for one in query.find_all(exp.Identifier)}
    everything = any(name_of(star.parent or star) != "count" for star in query.find_all(exp.Star))
    return {
        shape.name: tuple(one.name for one in shape.columns if everything or one.name.lower() in names)
        for shape in shapes
    }

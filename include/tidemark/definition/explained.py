"""What is computed of a definition, and what is read for it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemark.definition.recipe import ByKey, InSessions, Recipe, Slid
from tidemark.errors import listed
from tidemark.model.derived import Mode
from tidemark.model.instant import format_duration


def explained(recipe: Recipe, inputs: Sequence[str]) -> tuple[str, ...]:
    """Lines for people: the mode, which values decide what is computed, what is read, and why it is not a cheaper mode.
    `inputs` are the definition's, in order."""
    return tuple(_lines(recipe, inputs))


def _lines(recipe: Recipe, inputs: Sequence[str]) -> Iterator[str]:
    if recipe.mode is Mode.BY_ROW and recipe.by_row is not None:
        yield f"mode: by row: each changed row of {recipe.by_row.input} becomes rows of its own, at its own times"
        yield f"reads: the changes of {recipe.by_row.input}, and nothing else"
    elif recipe.mode is Mode.BY_KEY and recipe.by_key is not None:
        yield from _by_key(recipe.by_key)
    elif recipe.mode is Mode.BY_KEY and recipe.windowed is not None:
        yield from _lying(recipe.windowed)
    else:
        yield "mode: whole: all rows are computed, and those that differ from what is held are written"
        yield f"reads: all rows of {listed(inputs)}, and of the collection"
    yield f"columns: {listed(recipe.columns, 100)}"
    if recipe.hidden:
        yield f"hidden columns: {listed((f'{one.name} {one.type}' for one in recipe.hidden), 100)}"
    yield f"key: {listed(recipe.key)}" if recipe.key else "key: none can be inferred; the file must say it"
    yield from (f"why: {why}" for why in recipe.why)


def _lying(rule: Slid | InSessions) -> Iterator[str]:
    by = f" of the same {listed(rule.by)}" if rule.by else ""
    if isinstance(rule, Slid):
        span = format_duration(rule.kind.size)
        yield f"mode: by key: sliding windows{by} that start up to {span} before a changed row or just after"
        yield f"reads: the changes of {rule.input}, and of the collection the windows{by}"
        yield f"reads of {rule.input}: the rows{by}, and computes from those up to {span} around these windows"
    else:
        yield f"mode: by key: the sessions{by} that a changed row is in, connects or parts"
        yield f"reads: the changes of {rule.input}, and of the collection the sessions{by}"
        yield f"reads of {rule.input}: the rows{by}, and computes from those in these sessions"


def _by_key(rule: ByKey) -> Iterator[str]:
    held = listed(rule.held)
    changed = " and of ".join(rule.touched)
    if rule.delta is not None:
        yield f"mode: by key: sums of each {held} grow by what changed"
        yield f"reads: the changes of {changed}, and of the collection the rows with a {held} that they have"
        yield f"adds up: {listed(rule.sums)}"
        return
    yield f"mode: by key: what has a {held} that changed rows have is computed anew"
    yield f"reads: the changes of {changed}, and of the collection the rows with a {held} that they have"
    for name in rule.touched:
        if leading := rule.clustered.get(name):
            columns = listed(column for column, _ in leading)
            yield f"reads of {name}: the rows with a {columns} that changed rows have, with which its key begins"
        else:
            yield f"reads of {name}: all rows, to find those of changed values; they are in order of none of them"

"""What the unsealed gate sees of what a derived collection was corrected by: what its commit says of it, and some of
its keys recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from tidemark.jobs.derived import NotComparable, opened, recipe_of
from tidemark.jobs.job import Job
from tidemark.jobs.queries.definition import compared_keys
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import MASKED
from tidemark.model.corrected import Corrected
from tidemark.model.key import Key
from tidemark.quality.evidence import Defined

KEYS = 16
"""Keys of a batch that are recomputed at most."""
MOST_ROWS = 2_000_000
"""Rows of all inputs up to which a few keys are recomputed though all of these must be read: a gate must cost less than
what it checks."""
VERSIONS = 1_000
"""Newest versions among which a batch's commit is looked for."""


def defined_batches(job: Job, state: Arrangement, batches: Mapping[str, Sequence[Part]]) -> dict[str, Defined]:
    """What is known of the unsealed `batches`, each given with its parts. Only the newest one can be compared with the
    definition: of those before it the collection holds what was true before."""
    # Of a batch that was trimmed, some of what its commit says is drained.
    whole = {batch.id for batch in state.unsealed if not batch.trimmed}
    commits = _commits(job, whole & batches.keys())
    found = {}
    for batch, parts in batches.items():
        change = commits.get(batch)
        defined = Defined(
            sum(consumption.batch == batch for consumption in state.consumptions),
            change.rows_added if change else None,
            change.rows_retracted if change else None,
        )
        if state.consumed is not None and state.consumed.batch == batch:
            defined = _compared(job, state, parts, defined)
        found[batch] = defined
    return found


def _commits(job: Job, batches: set[str]) -> dict[str, Corrected]:
    found: dict[str, Corrected] = {}
    for record in islice(job.log.history(), VERSIONS):
        change = record.change
        if isinstance(change, Corrected) and change.batch is not None and change.batch.id in batches:
            found[change.batch.id] = change
        if found.keys() == batches:
            break
    return found


def _compared(job: Job, state: Arrangement, parts: Sequence[Part], defined: Defined) -> Defined:
    if not _is_cheap(job, state):
        return defined
    keys = _some_keys(parts, len(state.collection.key))
    try:
        comparison = compared_keys(job, state, keys, KEYS)
    except NotComparable as error:
        job.note(f"no key is recomputed: {error}")
        return defined
    if comparison.left:
        job.note(f"not recomputed: {comparison.left}")
    if not comparison.keys:
        return defined
    rows = comparison.differing
    masked = state.collection.masked
    cells = rows[0].row if rows else ()
    first = ", ".join(f"{name} {MASKED if name in masked else cell}" for name, cell in cells)
    wrong = f"{first}: {rows[0].desired} times, stored {rows[0].stored} times" if rows else ""
    return Defined(defined.consumptions, defined.added, defined.retracted, comparison.keys, len(rows), wrong)


def _some_keys(parts: Sequence[Part], width: int) -> list[Key]:
    """Keys of so many columns that the records of parts name, from first to last; the bucket of a layout is none."""
    named = (key for part in parts for key in (*(first for first, _ in part.groups), part.last_key))
    keys = sorted({tuple(key)[-width:] for key in named})
    return keys[:: max(1, -(-len(keys) // KEYS))]


def _is_cheap(job: Job, state: Arrangement) -> bool:
    inputs = opened(job, state.collection.derived)
    rows = sum(batch.rows for given in inputs if given.state for batch in given.state.trace)
    if rows <= MOST_ROWS:
        return True
    recipe = recipe_of(state.collection.derived, inputs)
    rule = recipe.by_key if recipe else None
    return rule is not None and all(rule.clustered.get(given.name) for given in inputs)

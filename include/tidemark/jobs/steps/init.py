"""Init: create a collection from its file, or bring a changed declaration into its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job, Outcome, Proposal
from tidemark.jobs.queries.exact_values import check_values
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Created, Redefined
from tidemark.model.collection import Collection
from tidemark.model.evolution import started
from tidemark.model.transition.declarations import changed_columns, redeclared
from tidemark.plan.consume import Waits, usable
from tidemark.storage.log.log import Head
from tidemark.storage.probe.certificate import certified, kept
from tidemark.storage.probe.probe import leftover

if TYPE_CHECKING:
    from tidemark.plan.correct import InputState


def declare(job: Job, file: str) -> dict[str, Any]:
    """Create the collection a file declares, or redefine it where the file changed; a no-op where it did not.

    Of a derived collection the columns are those of its definition, which is analysed over its inputs where it is new
    (`derived_collection`). Raises InvalidUsage for a wrong file, for a change that data at rest cannot follow
    (model/evolution.py), and for one that breaks what is derived from the collection.
    """
    from tidemark.jobs.queries.consequences import check_unbroken, consequences, files_beside

    def check(new: Collection) -> None:
        check_unbroken(new.name, consequences(job, new, files_beside(file)))

    parsed = parse(file)
    if isinstance(parsed, DerivedFile):
        return declare_collection(job, derived_collection(job, parsed), check)
    return declare_collection(job, parsed.collection(), check)


def derived_collection(job: Job, file: DerivedFile) -> Collection:
    """The collection that the file of a derived one declares. What its columns are was frozen when its definition was
    analysed last; only where that is another one now, or there is none yet, it is analysed, on Spark.

    Raises InvalidUsage at the file's line: for an input that was never created or is computed from this collection, for
    a definition that does not fit its inputs, and for one whose key must be declared.
    """
    _check_acyclic(job, file)
    from tidemark.jobs.derived import declared_over, opened, shaped

    inputs = opened(job, file.origin)
    state = job.log.load().arrangement
    try:
        if (frozen := _frozen(state, file)) is not None and not _reads_others(frozen, inputs):
            key = [column.name for column in frozen.key]
            declared = file.collection(frozen.columns, key, frozen.hidden)
            return replace(declared, input_columns=frozen.input_columns)
        shape = shaped(job, file.name, file.origin, inputs)
    except InvalidUsage as error:
        raise file.refusal_of_definition(str(error)) from None
    return declared_over(file, shape, state)


def _frozen(state: Arrangement | None, file: DerivedFile) -> Collection | None:
    """The collection with the columns of this very definition, if that was analysed already."""
    if state is None or not state.collection.is_derived:
        return None
    return state.collection if state.collection.derived.fingerprint == file.origin.fingerprint else None


def _reads_others(frozen: Collection, inputs: Sequence[InputState]) -> bool:
    """Whether columns of its inputs changed since a collection was analysed; False where one is not there any more."""
    from tidemark.jobs.derived import reads_others, recipe_of

    if any(source.state is None for source in inputs):
        return False
    return reads_others(frozen, recipe_of(frozen.derived, inputs), inputs)


def waits_for_input(job: Job, file: str) -> Waits | None:
    """The input without which the definition that a file declares cannot be analysed yet, as it was never created; None
    if all are there, or it was analysed before."""
    parsed = parse(file)
    if not isinstance(parsed, DerivedFile) or _frozen(job.log.load().arrangement, parsed) is not None:
        return None
    from tidemark.jobs.derived import opened

    missing = (usable(given) for given in opened(job, parsed.origin) if given.state is None)
    return next((one for one in missing if isinstance(one, Waits)), None)


def _check_acyclic(job: Job, file: DerivedFile) -> None:
    """Raise InvalidUsage if an input is computed from the collection, by whatever ways, as the states have it now."""
    ways: dict[str, tuple[str, ...]] = {name: (name,) for name in file.inputs}
    reached = list(file.inputs)
    for name in reached:  # grows
        head = job.neighbour(name).log.load()
        if head.arrangement is None or not head.state.collection.is_derived:
            continue
        for one in head.state.collection.derived.inputs:
            if one == file.name:
                way = ", that from ".join((*ways[name], file.name))
                raise file.refusal(
                    file.line_of_input(ways[name][0]),
                    f"from: {file.name} is computed from {way}: no collection is computed from itself",
                )
            if one not in ways:
                ways[one] = (*ways[name], one)
                reached.append(one)


def declare_collection(
    job: Job, collection: Collection, check: Callable[[Collection], None] = lambda new: None
) -> dict[str, Any]:
    """As `declare`, from a declaration at hand. The result says what became of the value columns.

    `check` is called with a declaration that is about to replace another, and may refuse it.

    Before the first commit the store is asked what it promises (docs/decisions/0046): InvalidUsage if it breaks one of
    the guarantees that commits rely on.
    """

    def propose(head: Head) -> Proposal[Created | Redefined, tuple[list[str], bool]]:
        if head.arrangement is None:
            _ask_store(job)
            return Proposal(Created(started(collection), job.new_id()), ([], False))
        new = redeclared(head.state, collection)
        if new == head.state.collection:
            return Proposal(None, ([], False))
        check_values(job, head.state, new)
        check(new)
        return Proposal(Redefined(new), (changed_columns(head.state, new), _only(new) != _only(head.state.collection)))

    done = job.settle(propose)
    head, (columns, takes_others) = done.head, done.found
    outcome = Outcome.NOTHING_TO_DO if done.change is None or not done.fresh else done.change.kind
    if redeclared(head.state, collection) != head.state.collection:
        raise InvalidUsage(f"collection {collection.name} was declared otherwise by another run meanwhile; run again")
    for line in columns:
        job.note(f"collection {collection.name}: {line}")
    if takes_others:
        job.note(
            f"collection {collection.name}: `only` counts for files that are read from now on; rows taken before stay"
        )
    return {"outcome": str(outcome), "version": head.version, "collection": collection.name, "columns": columns}


def _only(collection: Collection) -> str | None:
    return None if collection.is_derived else collection.landed.source.only


def _ask_store(job: Job) -> None:
    """Ask the store what it promises and keep its certificate, unless one of this very store is kept already."""
    if kept(job.store, job.log.pause) is not None:
        return
    now = round(job.log.wall() * 1_000_000)
    proof = certified(job.store, unique=job.new_id(), writer=job.log.writer, now=now, pause=job.log.pause)
    if proof.left:
        job.note(leftover(proof))

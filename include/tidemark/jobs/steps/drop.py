"""Drop: end a collection by one commit, and bring it back by another. Objects stay until a collector takes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from tidemark.config.folder import files_declaring
from tidemark.errors import Contention, InvalidUsage, listed
from tidemark.jobs.derived import opened
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.queries.dependents import dependents
from tidemark.jobs.steps.correct import hold_consumed
from tidemark.jobs.steps.retain import drop_hold
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Dropped, Restored
from tidemark.model.transition import Stale
from tidemark.plan.correct import hold_name
from tidemark.storage.log.log import Head, Lost

BREAKS = {
    "derived": "computed from it: {}",
    "tables": "they name its files: {}; or end them by `tidemark unpublish`",
    "holds": "somebody holds its history: {}; or end the holds by `tidemark release`",
}
"""What a drop breaks only on demand (`--break-derived` …), and how it says so."""


def drop(job: Job, name: str, *, others: Iterable[str], folder: Path, breaks: Collection[str] = ()) -> dict[str, Any]:
    """End a collection, and its holds on its inputs. One that was dropped already keeps no hold either.

    Args:
        job: On the collection.
        name: Its name.
        others: The collections of its root, among which some may be computed from it.
        folder: Where collection files are. One that declares it would make it again.
        breaks: What may break of what depends on it, keys of BREAKS.

    Raises:
        InvalidUsage: It is declared still, or something depends on it that may not break.
    """
    if file := next(files_declaring(name, folder), None):
        raise InvalidUsage(f"{file} declares {name}, so its DAG would create it again; remove the file first")
    others = tuple(others)

    def change_for(head: Head) -> Dropped | None:
        if head.arrangement is None:
            return None
        _check_breaks(job, head.state, others, breaks)
        return Dropped(name)

    done = job.commit_until_fit(change_for)
    version, state = _before(job, name)
    ended = [input for input in _inputs(state) if _ended(job.neighbour(input), hold_name(name))]
    outcome = Outcome.NOTHING_TO_DO if done.change is None else Outcome.APPLIED
    size = sum(batch.bytes for batch in state.batches)
    return {"outcome": str(outcome), "version": done.head.version, "was": version, "bytes": size, "released": ended}


def undo(job: Job, name: str) -> dict[str, Any]:
    """Bring a dropped collection back as it was; where it is there, do nothing.

    It holds its inputs again, as far as these still have their history.

    Raises InvalidUsage where what it was made of has been collected.
    """
    head = job.log.load()
    if head.arrangement is not None:
        return {"outcome": str(Outcome.NOTHING_TO_DO), "version": head.version, "was": head.version}
    version, state = _before(job, name)
    committed = job.log.commit(head, Restored(version, state))
    if isinstance(committed, Lost):
        raise InvalidUsage(f"{name} cannot be brought back: {committed.reason}; create it with `tidemark init`")
    if isinstance(committed, Stale):
        raise Contention(f"{committed.reason}; run it again")
    if state.collection.is_derived:
        hold_consumed(job, state, opened(job, state.collection.derived))
    return {"outcome": str(Outcome.APPLIED), "version": committed.head.version, "was": version}


def _check_breaks(job: Job, state: Arrangement, others: Iterable[str], breaks: Collection[str]) -> None:
    """Raise InvalidUsage, naming all, where something depends on the collection that may not break."""
    uses = dependents(job, state, others)
    broken = {"derived": uses.derived + uses.unreadable, "tables": uses.tables, "holds": uses.holds}
    wrong = {kind: users for kind, users in broken.items() if users and kind not in breaks}
    if wrong:
        said = "; ".join(BREAKS[kind].format(listed(users)) for kind, users in wrong.items())
        flags = " ".join(f"--break-{kind}" for kind in wrong)
        raise InvalidUsage(f"{state.collection.name} is in use, {said}; to drop it all the same say {flags}")


def _before(job: Job, name: str) -> tuple[int, Arrangement]:
    """The version before a collection was dropped, and its state. InvalidUsage where that was collected."""
    for record in job.log.history():
        if isinstance(record.change, Dropped) and not record.change.token:
            try:
                return record.version - 1, job.log.load(record.version - 1).state
            except InvalidUsage:
                break
    raise InvalidUsage(f"what {name} was before it was dropped has been collected; `tidemark init` creates another one")


def _inputs(state: Arrangement) -> Iterator[str]:
    """The collections on which it may have a hold."""
    yield from dict.fromkeys(
        [
            *(state.collection.derived.inputs if state.collection.is_derived else ()),
            *(consumed.input for consumption in state.consumptions for consumed in consumption.inputs),
        ]
    )


def _ended(job: Job, hold: str) -> bool:
    """Whether a hold on another collection was ended now."""
    if job.log.load().arrangement is None:
        return False
    return bool(drop_hold(job, hold, missing_ok=True)["outcome"] == Outcome.APPLIED)

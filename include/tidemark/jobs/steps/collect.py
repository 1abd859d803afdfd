"""Collect: remove what no kept version names. Metadata only, and in two phases (docs/decisions/0014).

A run writes down what may go, and removes what was written down a grace ago and is still named by nothing. It may die
anywhere and be run again, also twice at once: what it deletes can never be named again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tidemark.errors import Contention, Corruption, InvalidUsage, listed
from tidemark.jobs.job import Job, Outcome
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Dropped
from tidemark.model.interval import Interval
from tidemark.model.transition import Stale
from tidemark.model.wording import counted
from tidemark.plan.collect import (
    COLLECT,
    Clocks,
    Garbage,
    GarbagePlan,
    Graces,
    Inventory,
    Stored,
    Why,
    ahead,
    disagreement,
    due,
    first_kept,
    foreign,
    plan_collection,
    stepped,
    token_of,
)
from tidemark.storage.log import plans
from tidemark.storage.log.head import COLLECTION_GRACE, DATA_GRACE, Committed
from tidemark.storage.log.references import References
from tidemark.storage.log.versions import CHECKPOINT_EVERY, Version, number_of, retried
from tidemark.storage.read_many import read_many
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Missing, ObjectInfo, Unavailable

SECOND = 1_000_000
KEEP_VERSIONS = 7 * 86_400 * SECOND
"""How long a superseded version can still be loaded, and a read that began at it still finds its objects."""
GRACES = Graces(round(COLLECTION_GRACE * SECOND), round(DATA_GRACE * SECOND))
AT_ONCE = Graces(0, 0)
"""No grace: only where nothing else uses the collection."""
KEEP_PLANS = 10
"""The newest plans stay, for people: what went, and why."""
OF_VERSIONS = (Why.VERSION, Why.STRAY)
ROUNDS = 20
Progress = Callable[[str, int, int | None], None]


def _quiet(what: str, done: int, total: int | None) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Report:
    """What a run listed and what it removed, at `now` by the store's clock. `plan` is the key of what it wrote, if it
    wrote any; `distrusted` says why ages could not be judged, and so started again or were left alone."""

    version: int
    oldest_version: int
    plan: str | None
    listed: GarbagePlan
    now: int
    graces: Graces
    removed: tuple[Garbage, ...] = ()
    failed: int = 0
    distrusted: str | None = None

    def wait(self, entry: Garbage) -> int:
        """How long it is, in microseconds, until a listed entry may go; 0 if it may now."""
        appeared = {**dict(self.listed.appeared), self.listed.number: self.now}[entry.since]
        grace = self.graces.versions if entry.why in OF_VERSIONS else self.graces.objects
        return max(0, appeared + grace - self.now)

    def summary(self) -> dict[str, Any]:
        """Counts and bytes: the result of the step."""
        waiting = len(self.listed.entries) - len(self.removed)
        versions = sum(entry.why in OF_VERSIONS for entry in self.removed)
        return {
            "outcome": str(Outcome.APPLIED if self.removed else Outcome.PLANNED if waiting else Outcome.NOTHING_TO_DO),
            "version": self.version,
            "oldest_version": self.oldest_version,
            "plan": self.plan,
            "versions_removed": versions,
            "objects_removed": len(self.removed) - versions,
            "bytes_removed": sum(entry.bytes for entry in self.removed),
            "waiting": waiting,
            "bytes_waiting": self.listed.bytes - sum(entry.bytes for entry in self.removed),
            "failed": self.failed,
            "left_out": self.listed.left_out,
            "distrusted": self.distrusted,
        }


def collect(
    job: Job,
    *,
    keep: int = KEEP_VERSIONS,
    pinned: Sequence[int] = (),
    graces: Graces = GRACES,
    dry_run: bool = False,
    progress: Progress = _quiet,
) -> Report:
    """Plan what may go, and remove what has been in the plans for its grace. `keep` is in microseconds; no version from
    the first of `pinned` on goes. With `dry_run` nothing is written or removed. Where clocks disagree about the time
    that passed since the last plan, every grace starts again.

    Raises Corruption, and removes nothing, where the history or a table it names is not what was recorded.
    """
    if keep < graces.versions:
        raise InvalidUsage(
            f"versions kept for {keep // SECOND} s would go before their grace of {graces.versions // SECOND} s; "
            "keep them at least as long"
        )
    if not dry_run:
        _end_window_of_dropped(job)
    distrusted: str | None = None
    for _ in range(ROUNDS):
        with _undisturbed(job):
            search = _Search(job, progress)
            plan, now, doubt = search.plan(job, keep, pinned, afresh=distrusted is not None)
        doubt = distrusted or doubt
        if others := search.foreign:
            objects = counted(len(others), "object")
            job.note(
                f"{objects} in the collection's folder are not named as Tidemark's are, and stay: {listed(others, 3)}"
            )
        if dry_run or not (plan.entries or (search.previous and search.previous.entries)):
            return Report(plan.version, search.found.oldest, None, plan, now, graces, distrusted=doubt)
        try:
            plans.save(job.store, plan)
        except AlreadyExists:
            job.note(f"another collector wrote plan {plan.number}; looking again")
            continue
        now = _appeared(job, plan)
        if distrusted is None and (distrusted := search.distrusted(job, plan, now)):
            job.note(f"{distrusted}: every grace starts again")
            continue
        return replace(_carry_out(job, search, plan, now, graces, progress), distrusted=doubt)
    raise Contention(f"{ROUNDS} other collectors wrote a plan first; run the step again")


def collected(job: Job, *, keep: int) -> dict[str, Any]:
    """As `collect` with its ordinary graces: the report's summary, as a step of a run."""
    return collect(job, keep=keep).summary()


class _Search:
    """One look at what a collection holds and names."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self.began = _clocks(job)
        self.foreign: list[str] = []
        # Objects first: what is written after this listing is not garbage by it, what is named after it is not yet.
        objects = [
            _stored(info) for prefix in ("data/", "ledger/", "commits/", "reads/") for info in _listed(job, prefix)
        ]
        unfinished = [_stored(info) for info in retried(lambda: [*job.store.unfinished()], job.log.pause)]
        written = plans.listed(job.store, job.log.pause)[-1:]
        self.previous = plans.load(job.store, written[0].key, job.log.pause) if written else None
        self.appeared = _micros(written[0].modified) if written else 0
        infos = job.log.versions.listed()
        if not infos:
            raise InvalidUsage("there is no collection here; create it with `tidemark init`")
        versions = [(number_of(info.key), _stored(info)) for info in infos]
        oldest, newest = job.log.oldest_version(), versions[-1][0]
        self.found = Inventory(newest, oldest, versions, objects, unfinished)
        self.head = job.log.load()
        self.named = References(job.store, self.head.state.correctable_from if self.head.arrangement else 0)
        self.named.add(_shown(job.log.versions.between(oldest, newest), oldest, newest, progress))

    def plan(self, job: Job, keep: int, pinned: Sequence[int], *, afresh: bool) -> tuple[GarbagePlan, int, str | None]:
        """What may go, the time it is, and why ages cannot be judged by that, if so. How long versions are kept is
        counted to this machine's clock, unless the store's is a little ahead; that they go no sooner than their grace
        after they were listed, by the store's alone."""
        clocks = _clocks(job)
        doubt = ahead(self.found, self.appeared, clocks.wall)
        now = max(self.found.now, self.appeared, clocks.wall)
        judged = doubt is None and not afresh
        kept = first_kept(self.found, now=now, keep=keep, window=CHECKPOINT_EVERY, pinned=pinned)
        kept = kept if judged or keep == 0 else self.found.oldest
        named = self.named.since(kept)
        self.foreign = foreign(self.found, named)
        plan = plan_collection(
            self.found,
            kept,
            named,
            self.previous,
            now=now if judged else 0,
            appeared=self.appeared,
            clocks=clocks,
            afresh=afresh,
        )
        return plan, now, doubt

    def distrusted(self, job: Job, plan: GarbagePlan, now: int) -> str | None:
        """Why time did not pass as the store's clock says, up to `now`, when the plan just written appeared."""
        after = _clocks(job)
        return stepped(self.began, after) or disagreement(self.previous, self.appeared, plan.clocks or after, now)


def _clocks(job: Job) -> Clocks:
    return Clocks(_micros(job.log.wall()), _micros(job.log.monotonic()), job.log.boot())


def _appeared(job: Job, plan: GarbagePlan) -> int:
    """When a plan that was just written appeared, by the store's clock."""
    key = plans.key_of(plan.number)
    info = retried(lambda: job.store.stat(key), job.log.pause)
    if info is None:
        raise Contention(
            f"{key} was removed while this run was suspended, after {KEEP_PLANS} newer ones; run the step again"
        )
    return _micros(info.modified)


def _carry_out(job: Job, search: _Search, plan: GarbagePlan, now: int, graces: Graces, progress: Progress) -> Report:
    """Remove what is due by a plan that appeared at `now`."""
    ripe = due(plan, graces, now=now)
    removed = [*_removed_in_order(job, ripe.versions)]
    head, still = _still_unnamed(job, search, ripe)
    for at, gone in enumerate(read_many(lambda entry: _remove(job, entry), still)):
        progress("removing objects", at, len(still))
        removed += [still[at]] if gone else []
    if search.head.arrangement is None and removed:
        _forget_results(job)
    failed = len(ripe.versions) + len(still) - len(removed)
    for old in plans.listed(job.store, job.log.pause)[:-KEEP_PLANS]:
        _remove(job, Garbage(old.key, old.bytes, Why.UNNAMED))
    return Report(head, job.log.oldest_version(), plans.key_of(plan.number), plan, now, graces, tuple(removed), failed)


@contextmanager
def _undisturbed(job: Job) -> Iterator[None]:
    """Within, what is not there is Corruption, but where another collector has removed versions: then Contention."""
    oldest = job.log.oldest_version()
    try:
        yield
    except (Missing, Corruption) as error:
        if job.log.oldest_version() != oldest:
            raise Contention(f"another collector removed versions from {oldest} on meanwhile; run again") from None
        raise error if isinstance(error, Corruption) else Corruption(f"{error} is missing") from None


def _still_unnamed(job: Job, search: _Search, ripe: GarbagePlan) -> tuple[int, Sequence[Garbage]]:
    """What of the objects that are due is named by no version there is, and why it stays so.

    An attempt commits within half the objects' grace of its plan, or not at all; this commits first, so that a writer
    frozen before its create, for however long, finds its number taken and looks at the clock again.
    """
    head = search.found.version
    if any(entry.why is Why.UNNAMED for entry in ripe.objects):
        committed = _announced(job, token_of(ripe, job.new_id()))
        if isinstance(committed, Stale):
            raise Contention(f"{committed.reason}; run the step again")
        head = committed.head.version
        with _undisturbed(job):
            search.named.add(job.log.versions.between(search.found.version + 1, head))
    oldest = job.log.oldest_version()
    if oldest > head:
        raise Contention(
            f"while this run was suspended, everything up to version {oldest - 1} was collected; run the step again"
        )
    with _undisturbed(job):
        named = search.named.since(oldest)
    return head, [entry for entry in ripe.objects if entry.key not in named or entry.why is Why.UNFINISHED]


def _announced(job: Job, token: str) -> Committed | Stale:
    """Commit that a collector is at it: a version that changes nothing, also of a collection that was dropped."""
    base = job.log.load()
    if base.version and base.arrangement is None:
        return job.log.commit(base, Dropped(_name(job), token))
    return job.log.commit(base, Attempted(Fence(COLLECT, Interval(0, 1), token)))


def _end_window_of_dropped(job: Job) -> None:
    """Bring the log of a dropped collection to the next checkpoint.

    Versions go in whole windows between these, and no step of its own will ever write one. Then its newest versions
    name nothing.
    """
    while (head := job.log.load()).version and head.arrangement is None and head.version % CHECKPOINT_EVERY:
        if isinstance(_announced(job, job.new_id()), Stale):
            return


def _forget_results(job: Job) -> None:
    """Remove what gates said of a dropped collection, with the rows in it."""
    from tidemark.quality.results import results_of_collection

    if results := results_of_collection(job.store.url):
        results.forget(_name(job))


def _name(job: Job) -> str:
    return job.store.url.rstrip("/").rpartition("/")[2]


def _removed_in_order(job: Job, versions: Iterable[Garbage]) -> Iterator[Garbage]:
    """Versions go oldest first. One that stays, stays with all that follow, for a later run."""
    for entry in sorted(versions, key=lambda entry: entry.key):
        if not _remove(job, entry):
            return
        yield entry


def _remove(job: Job, entry: Garbage) -> bool:
    """Delete an object; False where the store does not say that it did: a later run tries again."""
    try:
        if entry.why is Why.UNFINISHED:
            job.store.discard(ObjectInfo(entry.key, entry.bytes, entry.token))
        else:
            job.store.delete(entry.key)
    except (Unavailable, Indeterminate) as error:
        job.note(f"{entry.key} stays for now: {error}")
        return False
    return True


def _listed(job: Job, prefix: str) -> list[ObjectInfo]:
    return retried(lambda: list(job.store.list(prefix)), job.log.pause)


def _stored(info: ObjectInfo) -> Stored:
    return Stored(info.key, info.bytes, _micros(info.modified), info.token)


def _micros(seconds: float) -> int:
    return round(seconds * SECOND)


def _shown(versions: Iterator[Version], first: int, last: int, progress: Progress) -> Iterator[Version]:
    for version in versions:
        progress("reading versions", version.number - first, last - first + 1)
        yield version

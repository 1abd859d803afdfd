"""Retention: `since` moves as far as the owner's policy and the holds allow; and the holds. Metadata only."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job, Outcome
from tidemark.model.arrangement import Hold
from tidemark.model.change import CompactionAllowed, HoldDropped, HoldPlaced
from tidemark.model.instant import format_instant
from tidemark.plan.correct import HOLD as DERIVED
from tidemark.plan.retain import alive, check_hold, plan_retention
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import asked_reads

HOLD_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}")


def retain(job: Job) -> CompactionAllowed | None:
    """Move `since` by the collection's retention, and forget holds that have expired; None if nothing is to do."""

    def change_for(head: Head) -> CompactionAllowed | None:
        now = _now(job)
        adaptive = head.state.collection.retention.policy == "adaptive"
        return plan_retention(head.state, now, tuple(asked_reads.asked(job.store, now)) if adaptive else ())

    return job.commit_until_fit(change_for).change


def hold(
    job: Job, name: str, *, since: int | None = None, or_later: bool = False, for_: int | None = None
) -> dict[str, Any]:
    """Keep reads from `since` on (None: all that can be read now) exact, for `for_` microseconds or until dropped.

    A hold of that name is moved, to where reads are still exact. InvalidUsage for a name that is none, for no time at
    all, and for history that is merged already, with the nearest readable times; with `or_later` reads are kept from
    where history begins instead.
    """
    if for_ is not None and for_ <= 0:
        raise InvalidUsage(
            "a hold lasts longer than 0s; write how long, or leave it out to keep it until it is released"
        )
    if not HOLD_NAME.fullmatch(name):
        raise InvalidUsage(f"hold name {name!r} must match {HOLD_NAME.pattern}")
    if name.startswith(DERIVED):
        raise InvalidUsage(
            f"hold name {name!r}: names that begin with {DERIVED!r} belong to derived collections, whose runs move and "
            "end them; write another name"
        )

    def change_for(head: Head) -> HoldPlaced | None:
        at = head.state.since if since is None else max(since, head.state.since if or_later else 0)
        check_hold(head.state, at)
        placed = Hold(name, at, None if for_ is None else _now(job) + for_)
        return None if placed in head.state.holds else HoldPlaced(placed)

    done = job.commit_until_fit(change_for)
    current = next(hold for hold in done.head.state.holds if hold.name == name)
    return {
        "outcome": str(done.outcome),
        "version": done.head.version,
        "hold": name,
        "since": current.since,
        "since_text": format_instant(current.since),
        "expires_text": "never" if current.expires is None else format_instant(current.expires),
    }


def hold_name(text: str) -> str:
    """A hold's name made of any text: readable, and another one for another text."""
    readable = re.sub(r"[^a-z0-9_.-]+", "-", text.lower())[:45].strip("-") or "hold"
    lead = readable if readable[0].isalpha() and not readable.startswith(DERIVED) else f"h-{readable}"
    return f"{lead}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def drop_hold(job: Job, name: str, *, missing_ok: bool = False) -> dict[str, Any]:
    """Let a hold go. InvalidUsage if there is none of that name, with those there are, unless that is all right."""
    head = job.log.load()
    names = [hold.name for hold in head.state.holds]
    if name not in names and not missing_ok:
        raise InvalidUsage(f"no hold {name!r}; holds: {', '.join(names) or 'none'}")

    def change_for(head: Head) -> HoldDropped | None:
        return HoldDropped(name) if name in [hold.name for hold in head.state.holds] else None

    done = job.commit_until_fit(change_for)
    outcome = Outcome.NOTHING_TO_DO if done.change is None else Outcome.APPLIED
    return {"outcome": str(outcome), "version": done.head.version, "hold": name}


def holds(job: Job, head: Head) -> list[dict[str, Any]]:
    """The holds of a state, oldest `since` first, and whether they still hold."""
    now = _now(job)
    return [
        {
            "hold": hold.name,
            "since": hold.since,
            "since_text": format_instant(hold.since),
            "expires": hold.expires,
            "expires_text": "never" if hold.expires is None else format_instant(hold.expires),
            "holds": bool(alive([hold], now)),
        }
        for hold in sorted(head.state.holds, key=lambda hold: (hold.since, hold.name))
    ]


def _now(job: Job) -> int:
    return int(job.log.wall() * 1_000_000)

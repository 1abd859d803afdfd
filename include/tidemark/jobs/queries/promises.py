"""What the store below a root promises, found out by asking it; what was asked with is deleted again."""

from __future__ import annotations

from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job, fresh_id
from tidemark.jobs.queries.locate import check_root, is_absent
from tidemark.model.instant import format_instant
from tidemark.storage import open_store
from tidemark.storage.probe.certificate import certified, kept
from tidemark.storage.probe.probe import Proof, prove


def promises_of_root(root: str) -> Proof:
    """Ask the store at a root, which must exist if it is a folder. Raises what `prove` does."""
    check_root(root)
    if is_absent(root):
        raise InvalidUsage(f"root {open_store(root).url} does not exist; create the folder, or pass another root")
    return prove(open_store(root), fresh_id())


def promises_of_collection(job: Job) -> tuple[Proof, str]:
    """Ask the store of a collection and keep the certificate with it; since when there is one. UpgradeRequired for a
    collection that a newer Tidemark wrote, in which nothing is created."""
    job.log.load()
    now = round(job.log.wall() * 1_000_000)
    proof = certified(job.store, unique=job.new_id(), writer=job.log.writer, now=now, pause=job.log.pause)
    certificate = kept(job.store, job.log.pause)
    return proof, format_instant(round(certificate.modified * 1_000_000) if certificate else now)


def as_dict(proof: Proof) -> dict[str, Any]:
    """A proof as JSON."""
    promises = {str(one): one.promise for one in proof.guarantees}
    return {"store": proof.address, "guarantees": promises, "left": list(proof.left)}

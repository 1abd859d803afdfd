"""Asking a store what it promises, before anything is committed to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from tidemark.errors import InvalidUsage, TidemarkError, Unavailable
from tidemark.model.guarantee import FILE_SYSTEMS_ONLY, Guarantee, Observation
from tidemark.storage.probe import file_system
from tidemark.storage.probe.questions import Questions
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.store import Indeterminate, Missing, ObjectStore, Remote

FOLDER = "_probe-"
"""Objects of a probe are in a folder of this name and something unique: no collection, and nothing of one, is called
so. One whose process was killed leaves them; they may be removed at any time."""


@dataclass(frozen=True)
class Proof:
    """A store that kept its promises when it was asked; `left` are keys of objects that it did not let us delete."""

    address: str
    guarantees: tuple[Guarantee, ...]
    left: tuple[str, ...]


def address_of(store: ObjectStore) -> str:
    """Where a store is, with the server that answers for it."""
    return store.address if isinstance(store, Remote) else store.url


def prove(store: ObjectStore, unique: str, pause: Callable[[float], None] = time.sleep) -> Proof:
    """Ask the store; `unique` is a name that no other probe has.

    Raises InvalidUsage with the guarantee that the store breaks. What says nothing about a guarantee is raised as it
    is: InvalidUsage without permission, Unavailable without an answer. In each case what was created is deleted, and
    where it cannot be, that is in the error.
    """
    questions = Questions(store, f"{FOLDER}{unique}/", pause)
    with _tidied(store):
        try:
            _judge(store, questions)
        except TidemarkError as error:
            if left := _deleted(questions):
                raise type(error)(f"{error}; {_undeleted(left, address_of(store))}") from error
            raise
        except BaseException:
            _deleted(questions)
            raise
        left = _deleted(questions)
    kept = tuple(one for one in Guarantee if isinstance(store, LocalStore) or one not in FILE_SYSTEMS_ONLY)
    return Proof(address_of(store), kept, left)


def leftover(proof: Proof) -> str:
    """What to say of the objects that could not be deleted."""
    return _undeleted(proof.left, proof.address)


def _judge(store: ObjectStore, questions: Questions) -> None:
    for seen in _observations(store, questions):
        if broken := seen.broken():
            raise InvalidUsage(f"{address_of(store)} cannot hold collections: {broken}; use another store")


def _observations(store: ObjectStore, questions: Questions) -> Iterator[Observation]:
    if isinstance(store, LocalStore):
        folder = Path(store.url) / questions.folder
        yield file_system.synced(folder, questions.folder)
        questions.keys |= {f"{questions.folder}{name}" for name in file_system.NAMES}
        yield file_system.linked(folder, questions.folder)
    yield from questions.ask()


def _tidied(store: ObjectStore) -> AbstractContextManager[None]:
    return file_system.without_new_folders(store.root) if isinstance(store, LocalStore) else nullcontext()


def _deleted(questions: Questions) -> tuple[str, ...]:
    """Delete what the probe created; the keys that could not be, after a second try. A create that was cut may come
    late: the folder is listed before that."""
    left = set(_delete(questions.store, questions.keys))
    with suppress(InvalidUsage, Unavailable):
        left |= set(questions.store.keys(questions.folder))
    return _delete(questions.store, left)


def _delete(store: ObjectStore, keys: Collection[str]) -> tuple[str, ...]:
    left = []
    for key in sorted(keys):
        try:
            store.delete(key)
        except (InvalidUsage, Unavailable, Indeterminate):
            with suppress(InvalidUsage, Unavailable, Missing):
                if store.stat(key) is None:
                    continue
            left.append(key)
    return tuple(left)


def _undeleted(left: tuple[str, ...], address: str) -> str:
    objects = f"{len(left)} object{'s' if len(left) > 1 else ''} of the probe"
    return f"{objects} could not be deleted and may be removed: {left[0].partition('/')[0]}/ below {address}"

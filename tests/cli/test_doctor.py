"""`tidemark doctor` and what `init` asks of a store before its first commit."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable

import pytest

from tests.cli.conftest import EVENTS, STOCK, Shell
from tidemark.model.guarantee import Guarantee
from tidemark.storage import open_store
from tidemark.storage.probe.certificate import FOLDER, key_of


def objects(shell: Shell) -> list[str]:
    return sorted(str(path.relative_to(shell.root)) for path in shell.root.rglob("*") if path.is_file())


def certificate(shell: Shell, name: str) -> str:
    return f"{name}/{key_of(open_store(f'{shell.root}/{name}').url)}"


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "link", fail)


def test_doctor_says_that_a_root_may_hold_collections_and_leaves_nothing(shell: Shell):
    shell.root.mkdir()
    said = shell.ok("doctor").out
    assert said.startswith(f"{shell.root} may hold collections: it kept 10 of 10 guarantees\n")
    assert all(f"{one}  " in said and one.promise in said for one in Guarantee)
    document = shell.json("doctor")
    assert document == {
        "store": str(shell.root),
        "guarantees": {str(one): one.promise for one in Guarantee},
        "left": [],
        "needless_holds": [],
    }
    assert list(shell.root.iterdir()) == []


def test_doctor_refuses_a_file_system_by_the_guarantee_it_breaks(shell: Shell, monkeypatch):
    shell.root.mkdir()
    without_links(monkeypatch)
    refused = shell.refused("doctor")
    assert refused == (
        f"{shell.root} cannot hold collections: {Guarantee.HARD_LINKS.promise}, "
        "but here a link at a free name fails: Operation not supported; use another store"
    )
    assert list(shell.root.iterdir()) == []


def test_doctor_wants_a_root_that_is_there(shell: Shell):
    assert "does not exist; create the folder" in shell.refused("doctor")
    assert not shell.root.exists()
    shell.root.write_text("")
    assert "is not a folder" in shell.refused("doctor")


def test_init_keeps_the_certificate_of_the_store_with_the_collection(shell: Shell):
    shell.ok("init", shell.declared(EVENTS))
    assert objects(shell) == [certificate(shell, "events"), "events/versions/00000000/000000000001.json"]
    shell.ok("init", shell.declared(STOCK))
    assert certificate(shell, "stock") in objects(shell)
    assert shell.json("status")["collections"][0]["collection"] == "events"
    shell.ok("verify", "events")
    shell.ok("collect", "events")
    assert certificate(shell, "events") in objects(shell)


def test_init_refuses_a_file_system_that_breaks_a_guarantee_and_leaves_nothing(shell: Shell, monkeypatch):
    file = shell.declared(EVENTS)
    without_links(monkeypatch)
    assert Guarantee.HARD_LINKS.promise in shell.refused("init", file)
    assert not shell.root.exists()


def test_a_collection_without_a_certificate_works_and_doctor_gives_it_one(shell: Shell):
    """It was created by an earlier release, or has been copied here."""
    file = shell.declared(EVENTS)
    shell.ok("init", file)
    shutil.rmtree(shell.root / "events" / FOLDER)
    shell.events(1, "a,1,00:00")
    shell.ok("init", file)
    shell.moved("events", "2024-01-01")
    shell.ok("verify", "events")
    assert not (shell.root / "events" / FOLDER).exists()
    said = shell.json("doctor", "events")
    assert said["collection"] == "events"
    assert certificate(shell, "events") in objects(shell)
    assert shell.json("doctor", "events")["certified_since"] == said["certified_since"], "the first stays"
    assert [path.name for path in (shell.root / "events").glob("_probe*")] == []


def killed_within(call: Callable[[], object]) -> None:
    with pytest.raises(KeyboardInterrupt):
        call()


def test_what_is_interrupted_leaves_nothing(shell: Shell, monkeypatch):
    from tidemark.storage.probe.probe import prove
    from tidemark.storage.stores.local import LocalStore

    real, left = LocalStore.create, iter([True, True, True])

    def create(self: LocalStore, key: str, data: bytes) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        real(self, key, data)

    monkeypatch.setattr(LocalStore, "create", create)
    killed_within(lambda: prove(LocalStore(str(shell.root)), "x"))
    assert not shell.root.exists()

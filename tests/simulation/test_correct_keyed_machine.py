"""The machine of test_correct_machine.py with files that say what keys became: each key holds, at every point, what the
last of the facts says that its files tell now, as they were first judged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from simulation.test_correct_machine import (
    DAYS,
    REACH,
    Machine,
    Multiplicities,
    Oracle,
    Version,
    expected,
    of_files,
    walk,
)
from support.budget import budget
from support.world import World
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Envelope
from tidemark.plan import compact, remember

pytestmark = pytest.mark.simulation

Place = tuple[int, bool, int, str, int]


class KeyedOracle(Oracle):
    """Files of facts, in dictionaries: it shares no code with the library."""

    def rows_at(self, time: int, event_time: int) -> Multiplicities:
        last: dict[int, tuple[Place, str | None]] = {}
        for name, version in self.files.items():
            for k, v, learned, happened, o, row in self.counting(version) if version else ():
                place = (happened, o is not None, o or 0, name, row)
                if learned <= time and happened <= event_time and (k not in last or place > last[k][0]):
                    last[k] = place, v
        return Counter({(k, v, None): 1 for k, (_, v) in last.items() if v is not None})

    def counting(self, version: Version) -> Iterator[tuple[int, str | None, int, int, int | None, int]]:
        """The rows of a file that count, each with when it is learned and when it happened, its order and number."""
        letters = list(version.letters)
        for number, row in enumerate(version.rows):
            k, v, t, e, o = row
            late = e < version.complete
            if late and (self.policy == "discard" or (self.policy == "reemit" and version.complete - e > REACH)):
                if replayed := next((one for one in letters if one.row == row), None):
                    letters.remove(replayed)
                    yield k, v, replayed.known, e, o, number
                continue
            happened = version.known if late and self.policy == "next_window" else e
            yield k, v, version.known if late else max(t, version.known), happened, o, number

    def sequences(self, version: Version, known: int) -> dict[Any, list[Any]]:
        """What is said of each key at one time and of one order, as it counts from `known` on."""
        found = defaultdict(list)
        for k, v, learned, happened, o, _ in self.counting(version):
            found[k, happened, o].append((v, max(learned, known)))
        return found


class KeyedMachine(Machine):
    oracle: KeyedOracle

    def land(self) -> None:
        day, name = self.chance.randrange(DAYS), self.chance.choice("ab")
        rows = []
        for _ in range(self.chance.randrange(5)):
            e = max(0, self.chance.randrange(10 * day, 10 * day + 13) - self.chance.choice([0, 0, 8, 12]))
            t, o = e + self.chance.choice([0, 0, 1, 9]), self.chance.choice([None, 1, 2])
            gone, v = self.chance.random() < 0.2, self.chance.choice("xy")
            rows.append({"k": self.chance.randrange(3), "v": v, "t": t, "e": e, "o": o, "gone": gone})
        self.rewrite(day, name, rows)

    def evolve(self) -> None:
        """Values are added to updates by the machine this one is made of."""

    def run(self, day: int) -> None:
        """Days that began too long ago are corrected no more: their files are put back as they were."""
        try:
            super().run(day)
        except InvalidUsage:
            self.done["refused"] += 1
            for name, version in self.oracle.files.items():
                if name.startswith(f"{10 * day}/") and version:
                    (self.world.landing / name).unlink(missing_ok=True)
                    if version.text is not None:
                        (self.world.landing / name).write_text(version.text)

    def said(self, row: dict[str, Any]) -> Any:
        if "op" in row:
            key = (row["after"] or row["before"])["k"]
            return key, row["after"] and row["after"]["v"], row["t"], row["e"], row["o"]
        return row["k"], None if row["gone"] else row["v"], row["t"], row["e"], row["o"]

    def differ(self, before: Version, now: Version, known: int) -> bool:
        return self.oracle.sequences(before, known) != self.oracle.sequences(now, known)


class Forgetful(KeyedMachine):
    def replay(self) -> None:
        """Letters of what is forgotten stay letters; they are for the tests of replays."""


def walked(
    made: type[KeyedMachine],
    folder: Path,
    envelope: Envelope,
    policy: str,
    patch: pytest.MonkeyPatch,
    *,
    reprocess_for: int,
) -> Counter[str]:
    done: Counter[str] = Counter()
    patch.setattr(remember, "FAN_IN", 2)
    patch.setattr(remember, "LEAST_GROWTH", 1)
    patch.setattr(compact, "SETTLED_ROWS", 1)
    for seed in range(budget(ci=3, deep=80)):
        (folder / str(seed)).mkdir()
        world = World(folder / str(seed), of_files(envelope, policy, reprocess_for=reprocess_for))
        machine = made(world, KeyedOracle(policy), Random(f"{seed} {envelope} {policy}"), done)
        walk(machine)
        machine.compact()
        machine.check()
        done["merged"] += len(world.state.remembered)
    return done


@pytest.mark.parametrize("policy", ["discard", "reemit", "next_window"])
@pytest.mark.parametrize("envelope", [Envelope.UPSERT, Envelope.DEBEZIUM])
def test_each_key_holds_what_the_files_say_now(
    tmp_path: Path, envelope: Envelope, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = walked(KeyedMachine, tmp_path, envelope, policy, monkeypatch, reprocess_for=1000)
    assert min(done[what] for what in (*expected(policy), "merged")) > 0, done


@pytest.mark.parametrize("policy", ["discard", "reemit", "next_window"])
def test_what_is_too_long_ago_is_forgotten_and_refused_and_all_else_holds(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = walked(Forgetful, tmp_path, Envelope.UPSERT, policy, monkeypatch, reprocess_for=12)
    assert min(done[what] for what in ("corrected", "refused", "new", "died")) > 0, done

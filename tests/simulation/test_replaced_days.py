"""A day that was written again under other names: the collection holds what it says now, judged as at first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from simulation.correcting import made, rows_at, sealed, sound
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import World, interval
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.queries.intervals import interval_reports
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.model.collection import Envelope, Late

pytestmark = pytest.mark.simulation
ADDITIVE, KEYED = (Envelope.APPEND, Envelope.UPDATES), (Envelope.UPSERT, Envelope.DEBEZIUM)
ALL = [*ADDITIVE, *KEYED]
Files = dict[str, list[dict[str, Any]]]


def row(k: int, v: str, e: int, envelope: Envelope = Envelope.APPEND, **more: Any) -> dict[str, Any]:
    own = {Envelope.UPDATES: {"d": 1}, Envelope.UPSERT: {"gone": False, "o": 0}, Envelope.DEBEZIUM: {"o": 0}}
    return {"k": k, "v": v, "t": e, "e": e, **own.get(envelope, {}), **more}


def write(world: World, day: int, files: Files) -> None:
    """The day's folder has these files, and no other ones."""
    for path in (world.landing / str(10 * day)).glob("*"):
        path.unlink()
    for name, rows in files.items():
        world.land(day, name, rows)


def read(world: World, day: int, **words: bool) -> dict[str, Any]:
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing), **words))


def written_first(folder: Path, envelope: Envelope, files: Files, **landed: Any) -> World:
    """Two days are complete; the first has these files."""
    world = made(folder, envelope, late=Late("discard"), **landed)
    for day, of_day in enumerate([files, {"x": [row(9, "z", 15, envelope)]}]):
        write(world, day, of_day)
        read(world, day)
        sealed(world, day)
    return world


def drained(world: World) -> dict[tuple[int, str], int]:
    sealed(world, 1)
    assert sound(world)
    return rows_at(world)


@pytest.mark.parametrize("envelope", ALL)
def test_new_files_take_the_place_of_those_that_are_gone(tmp_path: Path, envelope: Envelope) -> None:
    """Rows that another file has, too, are not lost or counted twice; and the calendar has the files there are."""

    def rows(*values: tuple[int, str]) -> list[dict[str, Any]]:
        return [row(k, v, 2 + k, envelope) for k, v in values]

    world = written_first(tmp_path, envelope, {"a": rows((1, "a"), (2, "b")), "b": rows((3, "c"))})
    write(world, 0, {"c": rows((1, "a"), (3, "c")), "d": rows((2, "B")), "e": rows((4, "d"))})
    done = read(world, 0)
    assert done["late_discarded"] == 0
    assert "under another name" in done["changed"]
    assert "new file" not in done["changed"]
    assert drained(world) == {(1, "a"): 1, (2, "B"): 1, (3, "c"): 1, (4, "d"): 1, (9, "z"): 1}
    assert next(interval_reports(world.truth, world.state, [interval(0)], 0)).files == 3
    assert read(world, 0)["changed"] == "nothing changed"
    write(world, 0, {"c": rows((1, "a"), (3, "c")), "d": rows((2, "b")), "e": rows((4, "d"))})
    read(world, 0)
    assert drained(world)[2, "b"] == 1  # a file under its new name is corrected as any


@pytest.mark.parametrize("envelope", ADDITIVE)
def test_equal_bytes_under_another_name_write_entries_only(tmp_path: Path, envelope: Envelope) -> None:
    files = {"a": [row(1, "a", 2, envelope)], "b": [row(2, "b", 3, envelope)]}
    world = written_first(tmp_path, envelope, files)
    write(world, 0, {"m": files["b"], "n": files["a"]})
    done = read(world, 0)
    assert (done["batch"], done["files"]) == (None, 2)
    assert done["changed"] == "nothing changed, 2 files have another name and say the same"
    assert drained(world) == {(1, "a"): 1, (2, "b"): 1, (9, "z"): 1}
    write(world, 0, {"m": files["b"], "n": [row(1, "A", 2, envelope)]})
    assert (read(world, 0)["retracted"], drained(world)[1, "A"]) == (1, 1)


@pytest.mark.parametrize("envelope", ALL)
@pytest.mark.parametrize("stays", [False, True])
def test_it_is_asked_where_new_files_may_be_others(tmp_path: Path, envelope: Envelope, stays: bool) -> None:
    def of(**names: Sequence[int]) -> Files:
        return {name: [row(k, "v", 2, envelope) for k in keys] for name, keys in names.items()}

    before, now, replaced, added = of(a=[1, 2, 3]), of(n=[3, 4, 5]), [3, 4, 5], [1, 2, 3]
    says = "all 1 file of"
    if stays:
        before, now, replaced, added = of(a=[1, 2], b=[7]), of(a=[1, 2], n=[4]), [1, 2, 4], [1, 2, 7]
        says = "0/b.jsonl is gone, 1 file stayed, and 0/n.jsonl came"
    for word, expected in (("replaced", replaced), ("added", added)):
        (tmp_path / word).mkdir()
        world = written_first(tmp_path / word, envelope, before)
        write(world, 0, now)
        with pytest.raises(FileRefused, match=r"--replaced.*--added") as refusal:
            read(world, 0)
        assert says in str(refusal.value)
        assert refusal.value.details["replaced"]
        read(world, 0, **{word: True})
        assert drained(world) == {(k, "v"): 1 for k in expected} | {(9, "z"): 1}


@pytest.mark.parametrize("how", ["refuse", "skip", "count"])
def test_a_file_corrected_into_the_bytes_of_another_is_not_counted_twice_in_silence(tmp_path: Path, how: str) -> None:
    files = {"a": [row(1, "a", 2)], "b": [row(2, "b", 3)]}
    source = replace(made(tmp_path).collection.landed.source, duplicate_files=how)
    (tmp_path / "of").mkdir()
    world = written_first(tmp_path / "of", Envelope.APPEND, files, source=source)
    write(world, 0, {**files, "b": files["a"]})
    if how == "count":
        assert read(world, 0)["duplicate_files"] == 1
        assert drained(world)[1, "a"] == 2
        return
    with pytest.raises(FileRefused, match=r"0/b.jsonl: has the bytes of 0/a.jsonl now; what it said before stays"):
        read(world, 0)
    assert drained(world) == {(1, "a"): 1, (2, "b"): 1, (9, "z"): 1}


def test_words_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    world = made(tmp_path)
    for words in ({"added": True, "replaced": True}, {"added": True, "removed": True}):
        with pytest.raises(InvalidUsage, match="--added leaves"):
            read(world, 0, **words)


def test_a_bad_file_in_the_place_of_another_leaves_all_as_it_was(tmp_path: Path) -> None:
    world = written_first(tmp_path, Envelope.UPSERT, {"a": [row(1, "a", 2, Envelope.UPSERT)]})
    write(world, 0, {"b": []})
    (tmp_path / "0/b.jsonl").write_text("{no\n")
    with pytest.raises(FileRefused, match="said before stays"):
        read(world, 0, replaced=True)
    assert drained(world)[1, "a"] == 1


@pytest.mark.parametrize("envelope", ALL)
@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_call_leaves_it_to_the_next_try(tmp_path: Path, envelope: Envelope, after: bool) -> None:
    files = {"a": [row(1, "a", 2, envelope)], "b": [row(2, "b", 3, envelope), row(3, "c", 3, envelope)]}
    for nth in count(1, budget(ci=3, deep=1)):
        (tmp_path / str(nth)).mkdir()
        world = written_first(tmp_path / str(nth), envelope, files)
        write(world, 0, {"m": files["a"], "n": [row(2, "B", 3, envelope), row(3, "c", 3, envelope)]})
        fault = world.store = FaultyStore(world.truth, Fault(nth, after))
        read(world, 0)
        world.store = world.truth
        assert drained(world) == {(1, "a"): 1, (2, "B"): 1, (3, "c"): 1, (9, "z"): 1}, f"call {nth}: {fault.fired}"
        if fault.fired is None:
            return


class Life:
    """Days that are written, read in turn, and written again at random, under other names and the same."""

    def __init__(self, folder: Path, envelope: Envelope, policy: str, chance: Random) -> None:
        self.envelope, self.policy, self.chance, self.folder = envelope, policy, chance, folder
        self.world = self.begun("as it went")
        self.first = [self.drawn(day) for day in range(3)]
        self.last = list(self.first)
        self.run(self.world, self.first)
        self.read_first = {batch.id for batch in self.world.state.unsealed}

    def begun(self, name: str) -> World:
        (self.folder / name).mkdir(parents=True)
        return made(self.folder / name, self.envelope, late=Late(self.policy))

    def drawn(self, day: int, before: Sequence[dict[str, Any]] = ()) -> Files:
        """Files under some names, with some of the rows that were."""
        rows = [each for each in before if self.chance.random() < 0.7]
        for _ in range(self.chance.randrange(1, 4)):
            e = max(0, self.chance.randrange(10 * day, 10 * day + 13) - self.chance.choice([0, 0, 8, 12]))
            more: dict[str, Any] = {"t": e + self.chance.choice([0, 0, 1, 9])}
            more |= {"d": self.chance.choice([1, 2, -1])} if self.envelope is Envelope.UPDATES else {}
            more |= {"gone": self.chance.random() < 0.2} if self.envelope is Envelope.UPSERT else {}
            rows.append(row(self.chance.randrange(3), self.chance.choice("xy"), e, self.envelope, **more))
        files: Files = {name: [] for name in self.chance.sample("pqrst", self.chance.randrange(1, 4))}
        for each in rows:
            files[self.chance.choice(list(files))].append(each)
        return files

    def run(self, world: World, written: Sequence[Files]) -> None:
        for day, files in enumerate(written):
            write(world, day, files)
            read(world, day)
            sealed(world, day)

    def rewrite(self) -> None:
        day = self.chance.randrange(3)
        before_names = set(self.last[day])
        before = [each for rows in self.last[day].values() for each in rows]
        if self.chance.random() < 0.2:  # the same bytes under other names
            names = self.chance.sample("pqrstuv", len(self.last[day]))
            self.last[day] = dict(zip(names, self.last[day].values(), strict=True))
        else:
            drawn = self.drawn(day, before)
            while before_names < set(drawn):  # a file beside those that are there is a new one, and late
                drawn = self.drawn(day, before)
            self.last[day] = drawn
        write(self.world, day, self.last[day])
        fault = Fault(self.chance.randrange(1, 14), self.chance.random() < 0.5, self.chance.random() < 0.8)
        self.world.store = FaultyStore(self.world.truth, fault if self.chance.random() < 0.5 else None)
        words = self.chance.choice([{"replaced": True}, {"removed": True, "yes": True}])
        if set(self.last[day]) <= before_names:  # nothing came in the place of what is gone
            words = {"removed": True, "yes": True}
        read(self.world, day, **words)
        if self.chance.random() < 0.4:
            self.taken_out()
        self.world.store = self.world.truth
        if self.chance.random() < 0.6:
            sealed(self.world, 2)

    def taken_out(self) -> None:
        """A correction is taken out, and put back or read again."""
        for batch in reversed([batch for batch in self.world.state.unsealed if batch.id not in self.read_first]):
            try:
                self.world.run(lambda job, batch=batch: quarantine(job, batch.id))  # type: ignore[misc]
                if self.chance.random() < 0.5:
                    self.world.run(lambda job, batch=batch: release(job, batch.id))  # type: ignore[misc]
            except InvalidUsage:
                continue
        for each in range(3):
            write(self.world, each, self.last[each])
            read(self.world, each, removed=True, yes=True)

    def answers(self, world: World) -> list[Any]:
        """What is known at one time, as of several, once all is due."""
        for day in range(3, 7):
            read(world, day)
        sealed(world, 6)
        assert sound(world)
        return [rows_at(world, 60, event_time) for event_time in range(0, 40, 3)]


@pytest.mark.parametrize("policy", ["discard", "reemit"])
@pytest.mark.parametrize("envelope", ALL)
def test_it_is_as_if_only_the_last_writing_had_been_read(tmp_path: Path, envelope: Envelope, policy: str) -> None:
    for seed in range(budget(ci=4, deep=60)):
        life = Life(tmp_path / str(seed), envelope, policy, Random(f"{seed} {envelope} {policy}"))
        for _ in range(5):
            life.rewrite()
        clean = life.begun("at once")
        life.run(clean, life.last)
        assert life.answers(life.world) == life.answers(clean), (seed, json.dumps(life.last))

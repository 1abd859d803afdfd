"""Where an appender's files land: each whole, each once, whatever happens to the program and its storage."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pure.api.appending import DAY, NOON, SECOND, Place, row, table
from tidemark.errors import CommitUnknown, InvalidUsage, Unavailable
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.store import Indeterminate

pytestmark = pytest.mark.pure


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def declared(place: Place) -> Place:
    place.declare()
    return place


def test_a_file_goes_to_the_interval_that_goes_on_and_at_its_end_to_the_next(declared: Place) -> None:
    readings = declared.appender()
    folders = []
    for now in (NOON, NOON + DAY // 2 - 11 * SECOND, NOON + DAY // 2 - 10 * SECOND, NOON + DAY // 2 + 1):
        declared.clock.now = now
        readings.append(row(0))
        [chunk] = readings.flush()
        assert now < chunk.interval.upper
        folders.append(Path(chunk.path).parent.name)
    assert folders == ["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-02"]
    declared.clock.now = NOON + 30 * DAY + DAY // 2 - 1
    readings.append(row(0))
    assert Path(readings.flush()[0].path).parent.name == "2024-01-31"
    declared.clock.now += 1
    readings.append(row(0))
    with pytest.raises(
        InvalidUsage, match=r"no interval of readings takes rows at 2024-02-01T00:00:10Z: it starts at .*"
    ):
        readings.flush()


def test_a_file_that_lands_when_its_interval_is_over_is_warned_of(
    declared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = LocalStore.create

    def slow(store: LocalStore, key: str, data: bytes) -> None:
        create(store, key, data)
        declared.clock.now += DAY

    readings = declared.appender()
    readings.append(row(0))
    monkeypatch.setattr(LocalStore, "create", slow)
    with pytest.warns(UserWarning, match=r"landed after \[2024-01-01T.* was over: .* run `tidemark ingest`"):
        readings.flush()


def test_where_nothing_can_land_a_call_that_raises_has_taken_nothing(
    declared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = declared.appender(rows=2)
    readings.append(row(0))
    with monkeypatch.context() as broken:
        broken.setattr(LocalStore, "create", failing(Unavailable("no route")))
        assert readings.append(row(1)) == []
        assert (readings.taken, readings.position) == (2, 0)
        for call in (lambda: readings.append(row(99)), readings.tick, readings.flush, readings.close):
            with pytest.raises(Unavailable, match="no route"):
                call()
        assert (readings.taken, readings.position) == (2, 0)
    assert [(chunk.first, chunk.rows) for chunk in readings.append(row(2))] == [(0, 2)]
    readings.close()
    assert declared.values() == [0, 1, 2]


def failing(error: Exception) -> Callable[..., None]:
    def create(*_: object) -> None:
        raise error

    return create


def test_a_file_that_may_have_landed_lands_once_also_in_the_next_interval(
    declared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = LocalStore.create

    def lost(store: LocalStore, key: str, data: bytes) -> None:
        create(store, key, data)
        raise Indeterminate("no answer")

    readings = declared.appender()
    readings.append(row(0))
    with monkeypatch.context() as broken:
        broken.setattr(LocalStore, "create", lost)
        with pytest.raises(CommitUnknown, match="may have landed, or not: no answer; try again"):
            readings.flush()
    declared.clock.now += DAY
    with pytest.warns(UserWarning, match="landed after"):
        [chunk] = readings.flush()
    assert [Path(chunk.path)] == declared.files()
    assert Path(chunk.path).parent.name == "2024-01-01"


def test_a_file_that_could_not_land_goes_to_the_interval_of_later(
    declared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = declared.appender()
    readings.append(row(0))
    with monkeypatch.context() as broken:
        broken.setattr(LocalStore, "create", failing(Unavailable("no route")))
        with pytest.raises(Unavailable):
            readings.flush()
    declared.clock.now += DAY
    assert Path(readings.flush()[0].path).parent.name == "2024-01-02"


def test_the_position_goes_on_and_two_that_run_at_once_are_found_out(declared: Place) -> None:
    with declared.appender(producer="p") as first:
        first.append(table(range(5)))
    with declared.appender(producer="p-2") as other, declared.appender() as nobody:
        assert (other.position, nobody.position) == (0, 0)
        other.append(row(9))
    declared.clock.now += DAY
    one, two = declared.appender(producer="p"), declared.appender(producer="p")
    assert one.position == two.position == 5
    one.append(row(5))
    two.append(row(6))
    one.close()
    with pytest.raises(
        InvalidUsage, match=r"000000000005\.parquet is there already, with other bytes; is its producer"
    ):
        two.close()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("{{ landing }}/a/{{ ds }}-*.parquet", "a/2024-01-01-chunk.p.000000000000-000000000000.parquet"),
        (
            "{{ landing }}/{{ data_interval_start.strftime('%Y/%m/%d') }}/*",
            "2024/01/01/chunk.p.000000000000-000000000000",
        ),
        ("{{ landing }}/b/**/x-*-*.parquet", "b/x-chunk.p.000000000000-000000000000-.parquet"),
    ],
)
def test_files_are_named_as_the_path_has_them_and_found_again(place: Place, path: str, name: str) -> None:
    place.declare(path)
    for position in (0, 1):
        with place.appender(producer="p") as readings:
            assert readings.position == position
            readings.append(row(position))
    assert str(place.files()[0].relative_to(place.landing)) == name
    printed = place.run("ingest", "readings", "--date", "2024-01-01", "--landing", str(place.landing))
    assert "rows 2, files 2" in printed


@pytest.mark.parametrize(
    "path",
    ["{{ landing }}/{{ ds }}.parquet", "{{ landing }}/*/{{ ds }}/*.parquet", "{{ landing }}/{{ ds }}/?*.parquet"],
)
def test_a_path_that_does_not_say_where_a_new_file_goes_is_refused(place: Place, path: str) -> None:
    place.declare(path)
    with pytest.raises(InvalidUsage, match="does not say where a new file goes: it must name its folders"):
        place.appender()


PROGRAM = """
import sys, tidemark
root, landing, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
readings = tidemark.appender(root, "readings", landing=landing, producer="p", rows=7, clock=lambda: %d)
print(readings.position, flush=True)
for value in range(readings.position, last):
    readings.append({"sensor": f"s{value %% 3}", "value": value, "measured": value, "seen": %d})
readings.close()
print("done", flush=True)
"""


def test_a_program_that_is_killed_again_and_again_lands_each_row_once(declared: Place) -> None:
    """Killed at any moment with SIGKILL, it leaves whole files only, and goes on where it was."""
    last, chance = 2_000, random.Random(23)
    command = [sys.executable, "-c", PROGRAM % (NOON, NOON), declared.root, str(declared.landing), str(last)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(6):
        landed, files = len(declared.values()), len(declared.landed())
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        try:
            assert child.stdout is not None
            assert int(child.stdout.readline()) == landed
            more_than(declared, files + 5)
            time.sleep(chance.random() / 50)
        finally:
            child.kill()
        assert child.wait(timeout=60) == -signal.SIGKILL
        names = [path.name for path in declared.files() if not path.name.startswith("chunk.p.")]
        assert all(name.startswith(".tmp-") for name in names), names
        assert declared.values() == list(range(len(declared.values()))), "what has landed is whole, and the first rows"
    assert landed > 100
    ended = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=True)
    assert ended.stdout.endswith("done\n")
    assert declared.values() == list(range(last))
    printed = declared.run("ingest", "readings", "--date", "2024-01-01", "--landing", str(declared.landing))
    assert "rows 2,000" in printed


def more_than(place: Place, files: int) -> None:
    """Wait until so many have landed."""
    deadline = time.monotonic() + 60
    while len(place.landed()) <= files:
        assert time.monotonic() < deadline, f"no {files} files land within a minute"
        time.sleep(0.002)

"""How much of a standalone cluster one application asks for, and the message that a run without executors gets."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from tidemark.errors import InvalidUsage
from tidemark.resident import sizes
from tidemark.resident.sizes import DEFAULT_SHARE, ON_DEMAND, default_sizes
from tidemark.resident.standalone import Application, MasterState, NoAnswer, Worker
from tidemark.spark import no_executors, watch
from tidemark.spark.no_executors import advice

pytestmark = pytest.mark.pure


def cluster(*workers: tuple[int, int]) -> MasterState:
    """Idle workers, of so many cores and MiB each."""
    return MasterState(tuple(Worker(cores, cores, memory, memory) for cores, memory in workers))


@pytest.mark.parametrize("module", [sizes, no_executors, watch])
def test_the_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([(1, 1024)], (1, 1, "1024m", 2)),
        ([(1, 1024), (1, 1024)], (1, 1, "1024m", 2)),
        ([(2, 2048)], (1, 1, "1024m", 2)),
        ([(2, 1024), (2, 1024)], (1, 2, "512m", 2)),
        ([(8, 4096), (8, 65536)], (4, 8, "1024m", 8)),
        ([(6, 16384)] * 3, (3, 9, "1024m", 9)),
        ([(32, 65536)] * 10, (4, 160, "1024m", 160)),
    ],
)
def test_an_application_asks_for_half_of_the_cluster(
    workers: list[tuple[int, int]], expected: tuple[int, int, str, int]
) -> None:
    found = default_sizes({}, cluster(*workers))
    names = ("spark.executor.cores", "spark.cores.max", "spark.executor.memory", "spark.default.parallelism")
    assert found == dict(zip(names, map(str, expected), strict=True))


@pytest.mark.parametrize("cores", range(1, 40))
def test_two_applications_find_room_on_two_cores_and_more(cores: int) -> None:
    """On one worker as on two of half the size: nobody takes more than half, in cores and in memory."""
    for workers in ([(cores, 1024 * cores)], [(cores, 1024 * cores)] * 2):
        state = cluster(*workers)
        found = default_sizes({}, state)
        asked, each = int(found["spark.cores.max"]), int(found["spark.executor.cores"])
        assert asked % each == 0
        assert each * 2 <= max(2, cores)
        assert asked <= max(1, state.cores * DEFAULT_SHARE)


def test_what_was_chosen_stays_and_the_rest_fits_it() -> None:
    state = cluster((8, 16384), (8, 16384))
    assert "spark.cores.max" not in default_sizes({"spark.cores.max": "3"}, state)
    assert default_sizes({"spark.cores.max": "3"}, state)["spark.executor.cores"] == "3"
    assert default_sizes({"spark.executor.cores": "16"}, state)["spark.cores.max"] == "16", (
        "else it would never get one"
    )
    assert "spark.cores.max" not in default_sizes({"spark.executor.instances": "4"}, state)
    assert "spark.executor.memory" not in default_sizes({"spark.executor.memory": "4g"}, state)
    assert default_sizes({"spark.tidemark.share": "1"}, state)["spark.cores.max"] == "16"


def test_a_resident_one_gives_executors_back() -> None:
    state = cluster((2, 2048))
    assert ON_DEMAND.items() <= default_sizes({}, state, resident=True).items()
    chosen = {"spark.dynamicAllocation.enabled": "false"}
    assert not ON_DEMAND.keys() & default_sizes(chosen, state, resident=True).keys()
    assert not ON_DEMAND.keys() & default_sizes({}, state).keys()


@pytest.mark.parametrize("share", ["0", "-1", "1.1", "half", "nan"])
def test_a_share_that_is_none_is_refused(share: str) -> None:
    with pytest.raises(InvalidUsage, match=f"spark.tidemark.share is '{share}'; write a number above 0 and at most 1"):
        default_sizes({"spark.tidemark.share": share}, cluster((2, 2048)))


CONF = {"spark.cores.max": "2", "spark.executor.cores": "1", "spark.executor.memory": "2g"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (cluster(), "has no worker alive"),
        (cluster((2, 1024)), "No worker is as large as one of its executors"),
        (cluster((2, 4096)), "There is room for one: either it is starting, or executors end at once"),
        (
            MasterState((Worker(2, 1, 4096, 0),), (Application("app-2", "a", 1), Application("app-3", "b", 0))),
            "are used by a (1).",
        ),
        (
            MasterState((Worker(2, 1, 4096, 0),), (Application("app-1", "this run", 1), Application("app-3", "b", 0))),
            "It has 1 of the cores: its executors are starting, or cannot reach the driver.",
        ),
        (
            MasterState((Worker(2, 0, 4096, 0),), (Application("app-1", "this run", 1), Application("app-2", "a", 1))),
            "It has 1 of the cores: its executors are starting, or cannot reach the driver.",
        ),
        (None, "does not say what is free (it is away)"),
    ],
)
def test_the_advice_is_that_of_the_case(state: MasterState | None, expected: str) -> None:
    line = advice("spark://m:7077", CONF, state, "it is away", "app-1")
    assert expected in line
    assert "asks for up to 2 cores, by executors of 1 cores and 2,048 MiB" in line
    assert "\n" not in line


@pytest.mark.parametrize(("answers", "cores", "lines"), [("-+", "1", 0), ("--", None, 1)])
def test_a_master_is_asked_twice_before_all_cores_are_taken(
    answers: str, cores: str | None, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(answers)

    def ask(jvm: object, master: str) -> MasterState:
        if next(left) == "-":
            raise NoAnswer("its page cannot be read: timed out")
        return cluster((2, 2048))

    monkeypatch.setattr(sizes, "ask", ask)
    assert sizes.sizes_for(None, {"spark.master": "spark://m:7077"}).get("spark.cores.max") == cores
    assert len(capsys.readouterr().err.splitlines()) == lines
    assert list(left) == []

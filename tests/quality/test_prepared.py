"""Expectations are prepared once in a process: they must answer as Great Expectations' own runs do, whatever was asked
before, in threads and in forks."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.quality.support import DAY, World, collection, fact, update
from tests.quality.test_catalogue import EXAMPLES, ROWS
from tests.quality.test_suites import SOUND, failed
from tidemark.errors import GateFailed, InvalidUsage
from tidemark.jobs.steps.gate import gate
from tidemark.model.change import Redefined
from tidemark.model.collection import Envelope, Gate
from tidemark.model.evolution import evolved
from tidemark.quality import prepared
from tidemark.quality.expectations import OwnerExpectation, owner_expectations
from tidemark.quality.rows import pandas_rows
from tidemark.quality.validation import Validator
from tidemark.quality.verdict import Verdict
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.quality


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))


def statuses(*allowed: str) -> dict[str, Any]:
    return {"expect_column_values_to_be_in_set": {"column": "status", "value_set": list(allowed)}}


def frame_of(rows: Sequence[dict[str, Any]]) -> tuple[tuple[OwnerExpectation, ...], pd.DataFrame]:
    """Every example of the catalogue without a condition (which is ours to evaluate), and a frame of rows."""
    quality = [{name: example} for name, examples in EXAMPLES.items() for example in examples]
    world = World(collection(Envelope.UPSERT, quality=quality))
    parts = parts_table.parts_of(world.store, [world.ingest(1, rows)])
    owners = owner_expectations(world.collection)
    return tuple(owner for owner in owners if not owner.condition), pandas_rows(world.store, parts, world.collection)


def as_tuples(verdicts: Sequence[Verdict]) -> list[tuple[Any, ...]]:
    return [(v.passed, v.failing, v.judged, v.positions, repr(v.observed), repr(v.values), v.error) for v in verdicts]


def by_great_expectations(owners: Sequence[OwnerExpectation], frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The same, by a validation definition in a context, as Great Expectations' manual has it."""
    gx = prepared.great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    impl = gx.expectations.registry.get_expectation_impl
    asked = [impl(owner.name)(**owner.judged, meta={"at": at}) for at, owner in enumerate(owners)]
    suite = context.suites.add(gx.ExpectationSuite(name="s", expectations=asked))
    asset = context.data_sources.add_pandas("d").add_dataframe_asset("a")
    data = asset.add_batch_definition_whole_dataframe("b")
    definition = context.validation_definitions.add(gx.ValidationDefinition(name="v", data=data, suite=suite))
    done = definition.run(batch_parameters={"dataframe": frame}, result_format={"result_format": "COMPLETE"})
    found = {one.expectation_config.meta["at"]: one for one in done.results}
    results = [(found[at].success, found[at].result) for at in range(len(owners))]
    return [
        (
            success,
            result.get("unexpected_count"),
            result.get("element_count"),
            tuple(() if success else result.get("unexpected_index_list") or ()),
            repr(result.get("observed_value")),
            repr(tuple(result.get("partial_unexpected_list") or ())),
            None,
        )
        for success, result in results
    ]


def test_every_expectation_is_judged_as_great_expectations_own_run_judges_it() -> None:
    more = [fact(key, time=DAY, status=["new", "{}", None][key % 3], amount=[1, None][key % 2]) for key in range(9)]
    owners, none = frame_of([fact(1, time=DAY, deleted=True)])
    assert [bool(one.not_asked) for one in Validator().judge_rows(owners, none)] == [o.is_aggregate for o in owners]
    frames = [frame_of(ROWS), frame_of(more), ([owner for owner in owners if not owner.is_aggregate], none)]
    ours = [as_tuples(Validator().judge_rows(*one)) for one in frames]
    assert ours == [by_great_expectations(*one) for one in frames]
    assert ours == [as_tuples(Validator().judge_rows(*one)) for one in frames]


def test_a_redefined_suite_is_what_is_asked_next() -> None:
    world = World(collection(quality=[statuses("new")]))
    batch = world.ingest(1, [update(1, time=DAY, status="paid")])
    for allowed, passes in (("new", False), ("paid", True), ("new", False)):
        world.commit(Redefined(evolved(world.state.collection, collection(quality=[statuses(allowed)]))))
        if passes:
            assert gate(world.job(), Gate.UNSEALED)["batches"] == [batch.id]
            batch = world.ingest(2, [update(2, time=2 * DAY, status="paid")])
        else:
            with pytest.raises(GateFailed, match="1 row holds paid, not value_set"):
                gate(world.job(), Gate.UNSEALED)


def test_a_refused_expectation_is_refused_every_time_and_spoils_no_other() -> None:
    frame = pd.DataFrame({"status": ["new"]})
    right = prepared.Asked("expect_column_values_to_not_be_null", {"column": "status"}, "right")
    wrong = prepared.Asked("expect_column_values_to_not_be_null", {"column": "status", "mostly": 7}, "wrong")
    for _ in range(2):
        with pytest.raises(InvalidUsage, match="wrong is refused by Great Expectations"):
            prepared.evaluate([right, wrong], frame, "BASIC")
        assert [one.success for one in prepared.evaluate([right], frame, "BASIC")] == [True]


def test_few_are_kept_and_all_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MOST_KEPT", 2)
    monkeypatch.setattr(prepared, "_KEPT", {})
    frame = pd.DataFrame({"status": ["c"]})
    for _ in range(2):
        suites = [owner_expectations(collection(quality=[statuses(allowed)])) for allowed in "abcd"]
        assert [Validator().judge_rows(suite, frame)[0].passed for suite in suites] == [False, False, True, False]
    assert len(prepared._KEPT) == 2


def test_threads_judge_side_by_side() -> None:
    owners, frame = frame_of(ROWS)
    _, other = frame_of([fact(1, time=DAY, amount=None)])
    frames = [frame, other, frame, other]
    alone = [as_tuples(Validator().judge_rows(owners, one)) for one in frames]
    prepared._KEPT.clear()
    found: dict[int, list[Any]] = {at: [] for at in range(len(frames))}
    together = threading.Barrier(len(frames))

    def judge(at: int) -> None:
        together.wait()
        found[at] += [as_tuples(Validator().judge_rows(owners, frames[at])) for _ in range(3)]

    threads = [threading.Thread(target=judge, args=(at,)) for at in range(len(frames))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {at: [alone[at]] * 3 for at in range(len(frames))}


FORK = """
import os, signal, threading
import tidemark.quality.warm
from tidemark.quality import prepared
from tests.quality.test_suites import BROKEN, SOUND, failed

print(threading.active_count(), {gate.value: bool(prepared._KEPT) for gate in SOUND})
locked = threading.Event()
def hold():
    with prepared._PREPARING:
        locked.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
locked.wait()
if not os.fork():
    signal.alarm(120)  # of a child that waits for a lock that nobody in it will release
    for gate, rules in BROKEN.items():
        for name, broken in rules.items():
            found = failed(gate, SOUND[gate] | {"batch": "b0"}, SOUND[gate] | broken)
            assert [(one.rule, one.batch) for one in found] == [(name, SOUND[gate]["batch"])], found
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
os._exit(0)
"""


def test_a_fork_of_a_warm_process_judges_even_if_a_thread_was_preparing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK], capture_output=True, text=True, check=False
    )
    warm = dict.fromkeys(map(str, Gate), True)
    assert (done.stdout.splitlines(), done.returncode) == ([f"1 {warm}", "0"], 0), done.stderr


SIBLINGS = """
import os, signal, sys
import tidemark.quality.warm
from tidemark.resident.fork_server import shared_memory
from tests.quality.test_suites import BROKEN, SOUND, failed

print(shared_memory(), flush=True)
if not os.fork():  # killed while it has every lock that a progress bar takes
    from tqdm.auto import tqdm
    tqdm.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
if not os.fork():
    signal.alarm(60)
    for gate, figures in SOUND.items():  # of what passes nothing is asked of Great Expectations
        assert len(failed(gate, figures | next(iter(BROKEN[gate].values())))) == 1
    print("tqdm has a lock:", hasattr(sys.modules["tqdm"].tqdm, "_lock"), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
os._exit(0)
"""


def test_a_fork_that_is_killed_takes_no_lock_of_its_siblings_with_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SIBLINGS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["[]", "tqdm has a lock: False", "0"], done.stderr
    assert "Calculating Metrics" not in done.stderr


def test_two_figures_that_are_missing_are_not_two_that_agree() -> None:
    unknown = {"lower": None, "upper_of_older": None}
    (result,) = failed(Gate.TRACE, SOUND[Gate.TRACE] | unknown)
    assert result.rule == "neighbours touch"

"""An audit asks Great Expectations again about the evidence that gates judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.quality.support import DAY, World, collection, update
from tests.quality.test_suites import SOUND
from tidemark.errors import GateFailed, InvalidUsage
from tidemark.jobs.queries import gates_again
from tidemark.jobs.queries.verify import Unsound, audit
from tidemark.jobs.steps.gate import gate
from tidemark.model.change import Redefined, Sealed
from tidemark.model.collection import Gate
from tidemark.model.evolution import evolved
from tidemark.quality import results
from tidemark.quality.evidence import Evidence
from tidemark.quality.report import GateReport

pytestmark = pytest.mark.quality

Document = dict[str, Any]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A day that passed two gates."""
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))
    world = World(collection())
    world.ingest(0, [update(1, time=5)], verified_parts=1)
    gate(world.job(), Gate.UNSEALED)
    world.commit(Sealed(DAY, DAY, DAY))
    gate(world.job(), Gate.FRONTIER)
    gate(world.job(), Gate.TRACE)  # there is nothing to look at
    return world


def change(docs: Path, edit: Callable[[Document], object]) -> None:
    """Alter what is kept of the unsealed gate."""
    (path,) = (docs / "orders" / "unsealed").iterdir()
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def notes_of(world: World) -> list[str]:
    return [note for note in world.notes if "not judged again" in note]


def test_what_passed_passes_again_and_the_audit_says_how_many(world: World) -> None:
    report = audit(world.job())
    assert (report["outcome"], report["validations"], report["validations_left"]) == ("sound", 2, 0)
    assert notes_of(world) == []


def test_what_failed_fails_again_and_an_accepted_batch_is_no_difference(world: World) -> None:
    owner = {"expect_column_values_to_not_be_null": {"column": "status"}}
    world.commit(Redefined(evolved(world.state.collection, collection(quality=[owner]))))
    batch = world.ingest(2, [update(1, time=2 * DAY, status=None)], verified_parts=1)
    wrong = world.ingest(3, [update(1, time=3 * DAY)], rows=7, verified_parts=1)
    with pytest.raises(GateFailed):
        gate(world.job(), Gate.UNSEALED)
    with pytest.raises(GateFailed, match=wrong.id):
        gate(world.job(), Gate.UNSEALED, accept=batch.id, reason="a strike, as is known", by="ada")
    again = gates_again.gates_again(world.job(), world.state.collection)
    assert (again.validations, again.left, again.findings) == (3, 1, ())
    assert notes_of(world) == ["1 result of gates not judged again: the rules have changed since"]


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (
            lambda kept: kept["results"][4].update(passed=False),
            "rows as recorded: passed was False, Great Expectations says True",
        ),
        (
            lambda kept: kept["evidence"][0]["rows"][0].__setitem__(kept["evidence"][0]["figures"].index("rows"), 2),
            "rows as recorded: passed was True, Great Expectations says False, message was ''",
        ),
        (lambda kept: kept["results"].pop(4), "rows as recorded: rule was None"),
        (lambda kept: kept["evidence"][0]["figures"].pop(), "its evidence cannot be judged: ValueError"),
        (lambda kept: kept["evidence"].pop(), "its evidence cannot be judged: ValueError"),
        (lambda kept: kept.update(evidence=[5, 5]), "its evidence cannot be judged: TypeError"),
    ],
)
def test_a_difference_fails_the_audit(
    world: World, tmp_path: Path, edit: Callable[[Document], object], says: str
) -> None:
    change(tmp_path, edit)
    with pytest.raises(Unsound, match=r"orders/unsealed/.*json: gate result: ") as refused:
        audit(world.job())
    assert says in str(refused.value)
    assert [finding["rule"] for finding in refused.value.details["findings"]] == ["gate result"]


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda kept: kept.pop("evidence"), "kept without evidence, by a release before 0.6.0 or for its size"),
        (lambda kept: kept.update(suite="unsealed-of-before"), "the rules have changed since"),
        (lambda kept: kept.update(results=5), "gone, or damaged"),
    ],
)
def test_what_cannot_be_judged_again_is_said(
    world: World, tmp_path: Path, edit: Callable[[Document], object], reason: str
) -> None:
    change(tmp_path, edit)
    report = audit(world.job())
    assert (report["validations"], report["validations_left"]) == (1, 1)
    assert notes_of(world) == [f"1 result of gates not judged again: {reason}"]


def test_only_the_results_of_late_are_judged_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates_again, "LATELY", 0)
    assert gates_again.gates_again(world.job(), world.state.collection) == gates_again.Again()


def test_results_that_nobody_may_read_leave_the_rest_of_the_audit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidUsage("no permission for _gates")

    monkeypatch.setattr(results.Results, "names", refuse)
    report = audit(world.job())
    assert (report["validations"], report["validations_left"], report["parts_read"]) == (0, 1, 1)
    assert notes_of(world) == ["1 result of gates not judged again: no permission for _gates"]


def test_evidence_of_very_many_batches_is_left_out() -> None:
    def kept(batches: int) -> Document:
        rows = tuple(SOUND[Gate.TRACE] | {"batch": f"{at:032x}"} for at in range(batches))
        report = GateReport("orders", Gate.TRACE, "s", (), (), evidence=(Evidence(Gate.TRACE, rows),))
        found: Document = json.loads(results._bounded(report.as_dict() | {"padding": "x" * results.MOST_BYTES}))
        return found

    assert len(kept(1_000)["evidence"][0]["rows"]) == 1_000
    assert kept(3_000)["evidence"] is None

"""Every step is declared whole, and a declaration suffices: the app follows from it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from support.world import World, collection
from tests.support import toy_step
from tidemark.arrow.kernels.registry import KERNELS
from tidemark.errors import InvalidUsage
from tidemark.jobs import app, warm
from tidemark.jobs.job import Job, collection_store
from tidemark.jobs.steps.declared import STEPS, steps_of
from tidemark.jobs.steps.step import Argument, Intervals, Step, When
from tidemark.model.collection import Covers, Gate
from tidemark.quality.gates import GATES
from tools import spark_apps

PROJECT = Path(__file__).resolve().parents[3]
APPS, DOCS = PROJECT / "spark_apps", PROJECT / "docs"
BOUNDS = ["--lower", "2024-01-01", "--upper", "2024-01-02"]
VALUES = {
    "cut": "explicit",
    "gate": "trace",
    "keep_versions": "3d",
    "landing": "/l",
    "path": "a",
    "batch": "b",
    "format": "iceberg",
    "until": "2024-01-02",
}


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
class TestEveryStep:
    def test_its_job_takes_what_it_declares(self, step: Step) -> None:
        taken = inspect.signature(step.function).parameters
        given = {argument.parameter for argument in step.arguments}
        if step.intervals is Intervals.CHOICE:
            given.add("intervals")
        place = step.intervals in (Intervals.EACH, Intervals.SEVERAL, Intervals.NAMES_RUN)
        assert list(taken)[: 1 + place] == ["job", "interval"][: 1 + place]
        assert given <= taken.keys()
        needed = {name for name, parameter in taken.items() if parameter.default is inspect.Parameter.empty}
        assert needed - given == {"job", *(["interval"] if place else [])}

    def test_people_can_read_what_it_does(self, step: Step) -> None:
        assert step.docs.endswith(".")
        assert inspect.cleandoc(step.help).splitlines()[0].endswith(".")
        assert all(argument.help.endswith(".") for argument in step.arguments)

    def test_its_kernels_are_there(self, step: Step) -> None:
        assert all(callable(KERNELS[name].function) for name in step.kernels)

    def test_its_gate_is_declared(self, step: Step) -> None:
        assert step.gate in {*GATES, None}
        if step.when is When.EACH_RUN:
            assert step.gate is not None, "nothing goes on that no gate has looked at"

    def test_its_app_takes_what_it_declares(self, step: Step) -> None:
        bounds = [] if step.intervals is Intervals.NONE else BOUNDS
        words = [word for argument in step.arguments for word in argument.words(VALUES.get(argument.name, "true"))]
        args = app.parser(step.name).parse_args(["--root", "r", "--collection", "c", *bounds, *words])
        values = step.values(vars(args))
        assert values.keys() == {argument.parameter for argument in step.arguments}
        for argument in step.arguments:
            said = VALUES.get(argument.name, "true")
            assert values[argument.parameter] == (True if argument.flag else argument.parse(said))

    def test_a_warm_server_has_it_ready(self, step: Step) -> None:
        assert step.module in warm.MODULES


def test_the_run_of_a_collection_and_its_maintenance() -> None:
    of_run = [(step.name, step.gate) for step in steps_of(When.EACH_RUN)]
    assert of_run == [
        ("ingest", Gate.UNSEALED),
        ("seal", Gate.FRONTIER),
        ("drain", Gate.TRACE),
        ("compact", Gate.COMPACTION),
    ]
    derived = [step.name for step in steps_of(When.EACH_RUN, derived=True)]
    assert derived == ["correct", "seal", "drain", "compact"]
    assert [step.name for step in steps_of(When.MAINTENANCE)] == ["collect", "audit"]
    assert [step.name for step in steps_of(When.BEHIND)] == ["gate"]


def test_every_kernel_is_some_steps() -> None:
    assert {name for step in STEPS.values() for name in step.kernels} == KERNELS.keys()


def test_every_app_is_what_the_declaration_of_its_step_says() -> None:
    files = {file.name: file.read_text() for file in APPS.glob("*.py")}
    del files["step.py"]
    assert files == spark_apps.apps(), "run `make reference`"


@pytest.mark.parametrize("gate", Gate)
def test_every_gate_is_declared_whole(gate: Gate) -> None:
    judgement = GATES[gate]
    assert judgement.rules
    assert judgement.checks.endswith(".")
    assert len({rule.name for rule in judgement.rules}) == len(judgement.rules)
    out = judgement.out("orders", "b1", again="clear the run")
    assert "{" not in out
    assert gate.covers in Covers
    (certified,) = [row for row in (DOCS / "format.md").read_text().splitlines() if row.startswith("| `certified` |")]
    assert f"`{gate}`" in certified.partition("`gate` is")[2]


class TestAStepOfOnesOwn:
    """`tally` is declared in tests/support/toy_step.py, and nowhere else."""

    def parsed(self, *words: str) -> dict[str, Any]:
        common = ["--root", "r", "--collection", "c", *BOUNDS]
        return STEPS["tally"].values(vars(app.parser("tally").parse_args([*common, *words])))

    def test_its_app_parses_types_and_defaults(self, monkeypatch: pytest.MonkeyPatch) -> None:
        toy_step.declared(monkeypatch)
        assert self.parsed() == {"at_least": 1, "wait_for": None, "aloud": False}
        given = self.parsed("--least", "3", "--wait-for", "2h", "--aloud")
        assert given == {"at_least": 3, "wait_for": 7_200_000_000, "aloud": True}
        monkeypatch.setenv("TOY_LEAST", "8")
        assert self.parsed()["at_least"] == 8
        assert self.parsed("--least", "3")["at_least"] == 3

    def test_a_wrong_value_is_a_wrong_command_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        toy_step.declared(monkeypatch)
        with pytest.raises(SystemExit):
            self.parsed("--least", "many")
        assert "--least" in capsys.readouterr().err
        monkeypatch.setenv("TOY_LEAST", "many")
        with pytest.raises(InvalidUsage, match="not a whole number: 'many'"):
            self.parsed()

    def test_its_help_is_its_declaration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        toy_step.declared(monkeypatch)
        said = " ".join(app.parser("tally").format_help().split())
        assert "Count the batches of a collection." in said
        assert "--least COUNT Fewer are not counted. (TOY_LEAST)" in said

    def test_its_app_runs_its_job(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        toy_step.declared(monkeypatch)
        seen: list[Job] = []

        def counted(job: Job, interval: Any, **values: Any) -> dict[str, Any]:
            seen.append(job)
            return {"outcome": "applied", "version": 1, **values}

        monkeypatch.setattr(toy_step, "tally", counted)
        words = ["--root", str(tmp_path), "--collection", "orders", "--attempt", "a1", *BOUNDS, "--least", "3"]
        assert app.main("tally", words) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed == {
            **{"step": "tally", "collection": "orders", "outcome": "applied", "version": 1},
            **{"at_least": 3, "wait_for": None, "aloud": False},
        }
        assert (seen[0].attempt, seen[0].store.url) == ("a1", collection_store(str(tmp_path), "orders").url)

    def test_small_work_is_done_without_spark_and_the_result_says_so(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world = World(tmp_path / "landing", collection(), truth=collection_store(str(tmp_path), "tides"))
        world.land(0, "a", [{"k": 1, "v": "a", "t": 1, "e": 1}])
        words = ["--root", str(tmp_path), "--collection", "tides", "--landing", str(tmp_path / "landing")]

        class Cluster:
            parallelism = 2

            def run(self, kernel: str, tasks: Any) -> Any:
                raise AssertionError("executors were asked for")

        monkeypatch.setattr(app, "spark_runner", lambda *_: Cluster())
        bounds = ["--lower", "1970-01-01T00:00:00Z", "--upper", "1970-01-02T00:00:00Z"]
        assert app.main("ingest", [*words, *bounds]) == 0, capsys.readouterr()
        work = json.loads(capsys.readouterr().out)["work"]
        assert (work["runner"], work["estimated_peak_mib"]) == ("process", 1)

    def test_a_warm_server_would_have_it_ready(self, monkeypatch: pytest.MonkeyPatch) -> None:
        step, _ = toy_step.declared(monkeypatch)
        assert step.module is toy_step


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Tally!"}, "step name 'Tally!' must match"),
        ({"arguments": (Argument("root", "R."),)}, "declares root, which it has already"),
        ({"arguments": (Argument("lower", "L."),)}, "declares lower, which it has already"),
        ({"arguments": (Argument("a", "A."), Argument("a", "A."))}, "declares a, which it has already"),
        ({"when": When.EACH_RUN}, "belongs to each run, and takes no interval"),
        ({"when": When.MAINTENANCE, "intervals": Intervals.EACH}, "whose runs have no interval"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(change: dict[str, Any], said: str) -> None:
    intervals = change.pop("intervals", Intervals.CHOICE)
    declaration: dict[str, Any] = {
        "name": "tally",
        "job": "m:f",
        "intervals": intervals,
        "help": "H.",
        "docs": "D.",
        **change,
    }
    with pytest.raises(InvalidUsage, match=said):
        Step(**declaration)


def test_an_unknown_step_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidUsage, match="there is no step 'sael'; there are ingest, correct, gate, seal"):
        app.parser("sael")


def test_a_required_argument_that_is_not_given_is_named() -> None:
    with pytest.raises(InvalidUsage, match="no landing: pass --landing or set TIDEMARK_LANDING"):
        STEPS["ingest"].values({"landing": None})

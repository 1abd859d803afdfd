"""Every declared step has its command, and a step that is declared gets one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.cli.conftest import InProcess, Shell
from tests.support import toy_step
from tidemark.cli import app, steps
from tidemark.cli.command import Settings, register
from tidemark.jobs import app as jobs_app
from tidemark.jobs.job import collection_store
from tidemark.jobs.steps.declared import STEPS


def words(group: Any, before: str = "") -> set[str]:
    """The words of every command."""
    found = set()
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        found |= words(command, f"{before}{name} ") if hasattr(command, "commands") else {f"{before}{name}"}
    return found


def test_every_step_has_a_command() -> None:
    commands = words(typer.main.get_command(app))
    assert {steps.SHOWN_ELSEWHERE.get(name, name) for name in STEPS} <= commands
    assert steps.SHOWN_ELSEWHERE.keys() <= STEPS.keys()


def test_every_app_runs_its_step(events: Shell) -> None:
    """In the order of a day. What no gate has looked at by then, the step has gated."""
    events.events(1, "a,1,10:00", "b,2,11:00")
    common = ["--root", str(events.root), "--collection", "events"]
    day = ["--lower", "2024-01-01", "--upper", "2024-01-02"]
    more = {"ingest": ["--landing", str(events.landing)], "gate": ["--gate", "trace"]}
    results = {}
    elsewhere = ("publish", "unpublish")  # which need a table: tests/cli/test_publish.py
    landed = {name: step for name, step in STEPS.items() if step.origin != "derived" and name not in elsewhere}
    for name, step in landed.items():
        words = [*common, *(day if step.intervals.of_run else []), *more.get(name, [])]
        args = jobs_app.parser(name).parse_args(words)
        results[name] = jobs_app.run(name, args, lambda: InProcess(collection_store(str(events.root), "events")))
        json.dumps(results[name])
    assert {name: result["outcome"] for name, result in results.items()} == {
        **{"ingest": "applied", "gate": "nothing to do", "seal": "applied", "drain": "applied"},
        **{"compact": "nothing to do", "replay": "nothing to do", "collect": "nothing to do", "audit": "sound"},
    }
    assert {(result["step"], result["collection"]) for result in results.values()} == {
        (name, "events") for name in landed
    }


@pytest.fixture
def tally(events: Shell, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The commands made again with `tally` declared (tests/support/toy_step.py), over a collection that exists."""
    toy_step.declared(monkeypatch)
    made = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    steps.add_to(made)

    def invoke(*given: str) -> Any:
        where = {"TIDEMARK_ROOT": str(events.root), "COLUMNS": "150", "TERM": "dumb"}
        return CliRunner().invoke(made, list(given), obj=Settings(runner=InProcess), env=where)

    return invoke


def test_a_step_of_ones_own_is_a_command(tally: Any) -> None:
    day = ("--date", "2024-01-02")
    said = tally("tally", "events", "--least", "3", "--wait-for", "1h", "--aloud", *day, "--json")
    assert said.exit_code == 0, said.output
    printed = json.loads(said.stdout)
    (result,) = printed["results"]
    assert (printed["step"], printed["collection"], result["outcome"]) == ("tally", "events", "applied")
    assert (result["at_least"], result["wait_for"], result["aloud"]) == (3, 3_600_000_000, True)
    assert result["of"] == "[2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z)"
    plain = tally("tally", "events")
    assert plain.exit_code == 0
    assert "applied" in plain.stdout
    assert "at least 1" in plain.stdout
    assert "next: tidemark ingest events" in plain.stdout


def test_its_help_is_its_declaration(tally: Any) -> None:
    said = " ".join(tally("tally", "--help").stdout.replace("│", " ").split())
    assert "Count the batches of a collection." in said
    assert "--least COUNT Fewer are not counted. [env var: TOY_LEAST] [default: 1]" in said
    assert "--wait-for DURATION How long to wait." in said
    assert "--date DAY" in said
    assert "--spark MASTER" in said
    assert "tally Count the batches of a collection." in " ".join(tally("--help").stdout.replace("│", " ").split())
    assert "unsealed|frontier|trace|compaction|counted" in tally("gate", "--help").stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--least", "many"), "error: --least: not a whole number: 'many'; write 7"),
        (("--wait-for", "soon"), "error: --wait-for: not a duration: 'soon'"),
        (("--date", "2024-01-02", "--lower", "2024-01-01"), "both name intervals; give one of them"),
        (("--loud",), "No such option"),
    ],
)
def test_what_it_does_not_take_is_refused_in_one_line(tally: Any, given: tuple[str, ...], said: str) -> None:
    answer = tally("tally", "events", *given)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert said in answer.stderr


def test_a_command_that_lacks_an_argument_of_its_step_is_not_made() -> None:
    def replay(call: Any, collection: str, path: str | None) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="replay does not take as_now, batch of step replay"):
        register(typer.Typer(), "replay", step=STEPS["replay"])(replay)

"""Derived collections from a shell: how they stand, why they wait, and what is refused, without a JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.support.graph import KEY, VALUE, Graph
from tidemark.jobs.queries import definition
from tidemark.jobs.queries.definition import DefinitionReport, Frontier, Judge
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Collection
from tidemark.model.derived import Definition, Derived

DELAYS = """\
name: delays
from: [flights]
select: SELECT id, sum(amount) AS amount FROM flights GROUP BY id
"""


@pytest.fixture
def graph(shell: Shell) -> Graph:
    """`flights`, complete for two days, `carriers` for one, and `delays` computed from both."""
    graph = Graph(shell.root)
    graph.land("flights", 2)
    graph.land("carriers", 1)
    graph.derive("delays", "flights", "carriers")
    graph.correct("delays")
    return graph


def test_its_status_says_how_far_its_inputs_are_consumed_and_who_lags(shell: Shell, graph: Graph) -> None:
    printed = shell.ok("status", "delays").out
    for part in (
        "2024-01-02T00:00:00Z  complete below: no on-time row of an input is missing",
        "flights to 2024-01-02T00:00:00Z (it has more)",
        "carriers to 2024-01-02T00:00:00Z (waited for)",
        "carriers: carriers is complete below 2024-01-02T00:00:00Z, flights below 2024-01-03T00:00:00Z",
        "corrected to 2024-01-02T00:00:00Z, by key: 3 rows read, nothing differs",
        "tidemark ingest carriers --date 2024-01-02",
    ):
        assert part in printed
    assert "late" not in printed
    assert shell.json("status", "delays")["follows"]["waits_for"] == "carriers"
    assert "corrected to 2024-01-02T00:00:00Z" in shell.ok("log", "delays").out
    assert "delays" in shell.ok("status").out


def test_a_run_that_finds_nothing_new_says_so_and_starts_nothing(shell: Shell, graph: Graph) -> None:
    said = shell.ok("correct", "delays").out
    assert "waits for carriers: carriers is complete below 2024-01-02T00:00:00Z, flights below 2024-01-03" in said
    assert said.rstrip().endswith("next: tidemark ingest carriers --date 2024-01-02")
    assert shell.ok("correct", "delays", "--until", "2024-01-02").out.startswith(
        "nothing to do: its inputs have nothing new beyond 2024-01-02T00:00:00Z, version "
    )
    graph.land("carriers", 2)
    said = shell.ok("correct", "delays").out
    assert said.startswith("applied: corrected to 2024-01-03T00:00:00Z, by row: 0 rows read, 0 retracted and 0 added")
    assert said.rstrip().endswith("next: tidemark seal delays")
    assert shell.ok("seal", "delays").out.startswith("applied: complete below 2024-01-03T00:00:00Z, seal ")
    for words in (["gate", "frontier"], ["drain"], ["gate", "trace"], ["compact"]):
        shell.ok(words[0], "delays", *words[1:])
    done = shell.json("correct", "delays")
    assert (done["outcome"], done["next_step"]) == ("nothing to do", "tidemark ingest flights --date 2024-01-03")
    assert shell.json("status", "delays")["trace_upper_text"] == "2024-01-03T00:00:00Z"


def test_steps_of_the_other_origin_are_refused_and_say_which_is_meant(shell: Shell, graph: Graph) -> None:
    assert shell.refused("ingest", "delays", "--date", "2024-01-01") == (
        "ingest: delays is derived, no file of its own lands: run `tidemark correct delays`"
    )
    assert shell.refused("correct", "flights") == (
        "correct: flights is not derived, its rows land as files: run `tidemark ingest flights`"
    )
    assert "not derived" in shell.refused("explain", "flights")
    assert "not derived" in shell.refused("verify", "flights", "--definition")
    assert "leave --date out" in shell.refused("seal", "delays", "--date", "2024-01-01", code=2)


def test_it_says_how_it_is_computed_and_what_its_next_run_does(shell: Shell, graph: Graph) -> None:
    graph.derive("totals", "flights")
    explained = shell.json("explain", "totals")
    assert (explained["mode"], explained["next"]["does"]) == ("by_row", "corrects")
    said = shell.ok("explain", "totals", "--queries").out
    assert said.startswith("totals is computed by row: from the rows of its input that changed")
    assert "flights: consumed to nothing yet, readable to 2024-01-03T00:00:00Z" in said
    assert "next run" in said
    assert "-- whole" in said


def test_a_file_is_explained_before_anything_is_created(shell: Shell, graph: Graph) -> None:
    file = shell.declared(DELAYS.replace("delays", "sums"))
    said = shell.ok("explain", file).out
    assert said.startswith("sums is computed by key")
    assert "after `tidemark init`, the first build: whole" in said
    for change, said in {
        "key: [nope]": "sums.yaml:4: the definition has no column nope",
        "valid_from: sicne": "sums.yaml:4: the definition has no column sicne; did you mean 'since'?",
    }.items():
        text = DELAYS.replace("delays", "sums").replace("sum(amount) AS amount", "amount AS since")
        wrong = text.replace(" GROUP BY id", "") + change + "\n"
        assert said in shell.refused("explain", shell.declared(wrong))
    wrong = shell.declared(DELAYS.replace("delays", "sums").replace("amount)", "amuont)"))
    assert "sums.yaml:3: " in shell.refused("explain", wrong)
    landed = shell.declared(
        "name: x\nkey: [id]\ncolumns: {id: int}\nstart: 2024-01-01\ntime: arrival\nsource: {path: /x, "
        "format: csv, envelope: append}\n"
    )
    assert shell.ok("explain", landed).out == "x, by `tidemark init`: created\n"


def test_an_edited_file_is_explained_by_what_would_change(shell: Shell) -> None:
    graph = Graph(shell.root)
    graph.land("flights", 2)
    graph.derive("delays", "flights")
    graph.correct("delays")
    edited = shell.declared(DELAYS.replace("sum(amount)", "max(amount)"))
    said = shell.ok("explain", edited).out
    assert "the first build" not in said
    for part in (
        "delays is computed by key",
        "after `tidemark init`, whole (the definition is another than in version",
        "reads 0 rows at rest of its inputs, and writes by how much the answer differs, at the next frontier",
        "what was recorded below stays",
        "flights: consumed to 2024-01-03T00:00:00Z, readable to 2024-01-03T00:00:00Z",
    ):
        assert part in said
    explained = shell.json("explain", edited)
    assert (explained["mode"], explained["next"]["does"], explained["next"]["mode"]) == ("by_key", "redefines", "whole")
    assert explained["version"] == shell.json("status", "delays")["version"]
    kept = shell.declared("name: delays\nfrom: flights\nselect: SELECT id, amount FROM flights\nrefresh: whole\n")
    assert "nothing to do: its inputs have nothing new" in shell.ok("explain", kept).out


def test_a_definition_in_python_is_explained_with_the_file_it_is_in(
    shell: Shell, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_DEFINITIONS", str(tmp_path / "mine"))
    file = shell.declared("name: sums\nfrom: [flights]\npython: kinds:counts\nversion: '1'\nkey: [id]\n")
    said = shell.refused("explain", file)
    assert f"sums.yaml:3: the definition of sums is kinds:counts, and there is no {tmp_path}/mine/kinds.py" in said
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kinds.py").write_text("raise AssertionError('explain only looks')")
    assert f"{tmp_path}/mine/kinds.py" in shell.ok("explain", file).out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DELAYS.replace("flights", "flihgts"), "delays.yaml:2: from: there is no collection flihgts below"),
        (DELAYS + "schedule: '@daily'\n", "delays.yaml:4: schedule: the collection is derived"),
        (DELAYS.replace("sum(amount)", "rand()"), "delays.yaml:3: the select "),
    ],
)
def test_a_wrong_file_is_one_line(shell: Shell, graph: Graph, text: str, said: str) -> None:
    assert said in shell.refused("init", shell.declared(text))


def test_an_input_that_is_computed_from_it_is_refused(shell: Shell, graph: Graph) -> None:
    graph.derive("report", "delays")
    text = DELAYS.replace("flights", "report")
    assert "delays.yaml:2: from: delays is computed from report, that from delays" in shell.refused(
        "init", shell.declared(text)
    )


def test_what_can_be_compared_at_no_frontier_is_not_called_right(shell: Shell, graph: Graph) -> None:
    origin = Derived(("flights", "carriers"), Definition("SELECT id, amount FROM flights WHERE id > 1"))
    declare_collection(graph.job("delays"), Collection("delays", KEY, VALUE, origin))
    said = shell("verify", "delays", "--definition")
    assert said.code == 1
    assert "cannot be checked" in said.out
    assert "another definition was in force; `tidemark correct delays`" in said.err


def test_what_was_not_looked_at_is_not_called_right(
    shell: Shell, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many windows some are judged: it says how many, and that this is all that it speaks of."""
    some = Frontier(10, 10, {}, judged_by=Judge.LAW, windows=3, left="3 windows were judged, the others were not")
    for frontier, verdict in ((some, "as defined, as far as was looked"), (replace(some, left=""), "as defined")):
        report = DefinitionReport("delays", 7, (frontier,))
        monkeypatch.setattr(definition, "verify_definition", lambda *_, report=report, **__: report)
        said = shell.ok("verify", "delays", "--definition").out
        assert said.rstrip().splitlines()[-1] == f"{verdict}; version 7: 1 frontier computed again"
        assert ("3 windows were judged, the others were not" in said) == bool(frontier.left)
        shown = shell.json("verify", "delays", "--definition")
        assert shown["whole"] is not bool(frontier.left)
        assert (shown["frontiers"][0]["judged_by"], shown["frontiers"][0]["windows"]) == ("law", 3)


def test_show_says_what_it_is_computed_from(shell: Shell, graph: Graph) -> None:
    said = " ".join(shell.ok("show", "delays").out.split())
    assert "computed from flights, carriers by SELECT id, amount FROM flights" in said

"""A shell: the command line over a root and a landing of the test's own, with the kernels run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tidemark.arrow.kernels.registry import kernel, run_encoded
from tidemark.cli import app
from tidemark.cli.command import Settings
from tidemark.storage import ObjectStore
from tidemark.storage.documents.codec import decode, encode

EVENTS = """\
name: events
key: [id]
value: [amount]
columns: {id: string, amount: int, at: timestamp}
start: 2024-01-01
end: 2024-02-01
time: {column: at}
source: {path: "{{ landing }}/events/{{ ds }}/*.csv", format: csv, envelope: append}
"""
STOCK = """\
name: stock
key: [item, shelf]
value: [price]
columns: {item: string, shelf: int, price: float, at: timestamp}
start: 2024-01-01
time: {column: at}
source: {path: "{{ landing }}/stock/{{ ds }}/*.jsonl", format: jsonl, envelope: updates, diff: change}
"""
PEOPLE = """\
name: people
key: [person]
value: [city, born]
columns: {person: int, city: string, born: date, gone: bool, happened: timestamp, reported: timestamp}
start: 2024-01-01
time: {column: reported}
event_time: {column: happened}
late: {reemit: {max_lateness: 2d}}
source:
  path: "{{ landing }}/people/{{ ds }}/*.parquet"
  format: parquet
  envelope: upsert
  delete_when: "gone = TRUE"
"""


class InProcess:
    """Runs tasks one after the other, as JSON like any runner."""

    parallelism = 2

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        called = kernel(name)
        answers = (run_encoded(self.store, name, encode(task, called.task)) for task in tasks)
        return [decode(answer, called.answer, name=name) for answer in answers]


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    root: Path
    landing: Path
    files: Path
    runner: Callable[[ObjectStore], Any] | None = InProcess
    """What commands run kernels on; None: what they choose themselves."""

    def __call__(self, *words: str) -> Said:
        """Run a command, whatever comes of it. A traceback is never an answer."""
        places = {"ROOT": self.root, "LANDING": self.landing, "DOCS": self.files / "docs"}
        where = {f"TIDEMARK_{name}": str(place) for name, place in places.items()}
        answer = CliRunner().invoke(app, list(words), obj=Settings(runner=self.runner), env=where)
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            raise answer.exception
        assert "Traceback" not in answer.stderr
        return Said(answer.exit_code, answer.stdout, answer.stderr)

    def ok(self, *words: str) -> Said:
        """Run a command that must succeed."""
        said = self(*words)
        assert said.code == 0, f"{words}: {said.out} {said.err}"
        return said

    def refused(self, *words: str, code: int = 1) -> str:
        """Run a command that must be refused in one line, which is returned; nothing is on stdout."""
        said = self(*words)
        lines = [line for line in said.err.splitlines() if line.startswith("error: ")]
        assert (said.code, len(lines), said.out) == (code, 1, ""), f"{words}: {said}"
        return lines[0].removeprefix("error: ")

    def json(self, *words: str) -> Any:
        """The one document a command that must succeed prints."""
        return self.ok(*words, "--json").document

    def declared(self, text: str) -> str:
        """Write a collection file; its path."""
        path = self.files / f"{text.split()[1]}.yaml"
        path.write_text(text)
        return str(path)

    def land(self, path: str, content: str | bytes) -> Path:
        """Put a delta file below the landing."""
        file = self.landing / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def events(self, day: int, *rows: str) -> Path:
        """A day's file of the events collection: rows of id,amount,time of day."""
        lines = [f"{row.rpartition(',')[0]},2024-01-{day:02d}T{row.rpartition(',')[2]}Z" for row in rows]
        return self.land(f"events/2024-01-{day:02d}/a.csv", "\n".join(["id,amount,at", *lines]) + "\n")

    def moved(self, name: str, *days: str) -> None:
        """Ingest, gate, seal, gate, drain and gate some days."""
        for day in days:
            self.ok("ingest", name, "--date", day)
        self.ok("gate", name, "unsealed")
        self.ok("seal", name)
        self.ok("gate", name, "frontier")
        self.ok("drain", name)
        self.ok("gate", name, "trace")


def a_shell(folder: Path) -> Shell:
    """A shell whose root does not exist yet."""
    places = [folder / name for name in ("root", "landing", "files")]
    for place in places[1:]:
        place.mkdir()
    return Shell(*places)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return a_shell(tmp_path)


@pytest.fixture
def events(shell: Shell) -> Shell:
    """A shell with the collection `events`, created, and nothing in it."""
    shell.ok("init", shell.declared(EVENTS))
    return shell

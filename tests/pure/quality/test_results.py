"""Where gate results are kept: safe names, whole files, no more than so many, whatever a run is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidemark.errors import InvalidUsage
from tidemark.quality import results
from tidemark.quality.results import MOST_BYTES, Ran, Results, ran, result_name, results_url
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.private import PrivateStore
from tidemark.storage.stores.store import AlreadyExists

pytestmark = pytest.mark.pure

DOCUMENT: dict[str, Any] = {"collection": "orders", "gate": "unsealed", "results": [], "batches": []}


def test_an_attempt_of_airflow_is_known_by_its_task_instance() -> None:
    token = "scheduled__2024-01-01T00:00:00+00:00/ingest.gate_unsealed/-1/2/ab12"
    who = ran(token)
    assert who == Ran(token, "scheduled__2024-01-01T00:00:00+00:00", "ingest.gate_unsealed", -1, 2)
    assert who.digest == Ran("", who.run_id, who.task_id, -1, 2).digest
    assert who.digest != Ran("", who.run_id, who.task_id, -1, 3).digest
    assert ran("a/run/with/slashes/task/-1/1/x").run_id == "a/run/with/slashes"


@pytest.mark.parametrize("token", ["", "0f3a", "a/b", "run/task/x/1/y", "run/task/1/x/y", "../../../../etc"])
def test_any_other_attempt_is_itself(token: str) -> None:
    assert ran(token) == Ran(token)
    assert len(ran(token).digest) == 32


@pytest.mark.parametrize("run", ["../../../etc/passwd", "a:b+c/d", "x" * 5_000, "\0", "<script>", "run\n", "\ud800"])
def test_nothing_of_a_runs_spelling_is_part_of_a_path(tmp_path: Path, run: str) -> None:
    kept = Results(PrivateStore(str(tmp_path)))
    kept.keep(DOCUMENT, Ran("x", run, "task", -1, 1), "passed", 5)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent for path in files] == [tmp_path / "orders" / "unsealed"]
    (name,) = kept.names("orders", "unsealed")
    assert f"{name.name}.json" == files[0].name
    document = kept.load("orders", "unsealed", name)
    assert document is not None
    assert document["run_id"] == run


@pytest.mark.parametrize(
    "place", [("../x", "unsealed"), ("orders", "../unsealed"), ("Orders", "trace"), ("orders", "")]
)
def test_only_gates_of_collections_have_results(place: tuple[str, str]) -> None:
    with pytest.raises(InvalidUsage):
        list(Results(MemoryStore()).names(*place))


@pytest.mark.parametrize(
    "text", ["", "x", "../secret", f"{'1' * 16}-{'a' * 32}-passed.json", f"{'1' * 16}-{'a' * 32}-x"]
)
def test_what_is_no_name_of_a_result_is_none(text: str) -> None:
    assert result_name(text) is None


def test_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "KEEP", 3)
    kept = Results(MemoryStore())
    for at in (5, 1, 4, 2, 3):
        kept.keep(DOCUMENT, Ran(str(at)), "passed", at)
        kept.keep({**DOCUMENT, "gate": "trace"}, Ran(str(at)), "failed", at)
    assert [name.kept_at for name in kept.names("orders", "unsealed")] == [5, 4, 3]
    assert [(name.kept_at, name.outcome) for name in kept.names("orders", "trace")] == [
        (at, "failed") for at in (5, 4, 3)
    ]


def test_a_result_is_bounded_and_keeps_what_failed() -> None:
    row = {f"column_{at}": "x" * 500 for at in range(100)}
    failed = [{"rule": f"f{at}", "passed": False, "rows": [row] * 20} for at in range(3)]
    passed = [{"rule": f"p{at}", "passed": True, "rows": [], "observed": "x" * 200} for at in range(10_000)]
    kept = Results(MemoryStore())
    kept.keep({**DOCUMENT, "results": [*passed, *failed]}, Ran("x"), "failed", 1)
    (info,) = kept.store.list("")
    assert info.bytes <= MOST_BYTES
    (name,) = kept.names("orders", "unsealed")
    document = kept.load("orders", "unsealed", name)
    assert document is not None
    assert [result["rule"] for result in document["results"]][:3] == ["f0", "f1", "f2"]
    assert document["results"][0]["rows_left_out"] is True
    assert document["results_left_out"] == 10_003 - len(document["results"])


def test_private_files_are_whole_or_not_there_and_their_owners_alone(tmp_path: Path) -> None:
    store = PrivateStore(str(tmp_path / "new" / "place"))
    store.create("a/b.json", b"1")
    with pytest.raises(AlreadyExists):
        store.create("a/b.json", b"2")
    assert store.read("a/b.json") == b"1"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new").rglob("*")}
    assert modes == {"place": 0o700, "a": 0o700, "b.json": 0o600}


def test_where_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert results_url("s3://bucket/prefix/") == "s3://bucket/prefix/_gates"
    assert results_url("/data/collections") == "/data/collections/_gates"
    assert results_url("memory:/") is None
    monkeypatch.setenv("TIDEMARK_DOCS", "s3://elsewhere/docs")
    assert results_url("/data/collections") == "s3://elsewhere/docs"


def test_what_is_no_result_is_passed_over(tmp_path: Path) -> None:
    kept = Results(PrivateStore(str(tmp_path)))
    kept.keep(DOCUMENT, Ran("x"), "passed", 1)
    folder = tmp_path / "orders" / "unsealed"
    (folder / "index.html").write_text("of an older version")
    (name,) = kept.names("orders", "unsealed")
    for torn in ("", "{", "[" * 100_000, "5", json.dumps({**DOCUMENT, "kept_at": 1, "results": [5]})):
        (folder / f"{name.name}.json").write_text(torn)
        assert kept.load("orders", "unsealed", name) is None

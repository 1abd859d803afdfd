"""tools/style_ratchet.py: what is counted, and that counts only fall."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import style_ratchet
from tools.style_ratchet import RULES, Counts, bindings, lowered, main, worse

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("found = found.one + of(kept=3)", "found line 1"),
        ("x, (one, *some) = 1, (2, 3)", "one line 1, some line 1"),
        ("kept: int", "kept line 1"),
        ("for one in x:\n    there += one", "one line 1, there line 2"),
        ("with x as given, y as z: pass", "given line 1"),
        ("if (known := x): pass", "known line 1"),
        ("[one for one in x if any(some for some in y)]", "one line 1, some line 1"),
        ("try: pass\nexcept* OSError as shown: pass", "shown line 2"),
        ("def of(of, /, *asked,\n known, **plain): pass", "asked line 1, of line 1, known line 2, plain line 2"),
        ("lambda there: there", "there line 1"),
        (
            "match x:\n case [one, *some]: pass\n case {} as found: pass\n case _: pass",
            "one line 2, some line 2, found line 3",
        ),
        ("x.found = y[one] = 1; founder = 'found'", ""),
        ("def found(): '''one''' # some", ""),
    ],
)
def test_a_binding_is_whatever_gives_a_name_a_value(source: str, expected: str) -> None:
    assert ", ".join(bindings(source)) == expected


PLACES = {"a.py": {"names": ["one line 3", "some line 8"], "D205": ["line 1"]}, "new.py": {"names": []}}
NAMES_OVER_1 = ("names", 2, "1 are allowed: one line 3, some line 8")
EXACT = {"a.py": {"names": 2, "D205": 1}}


@pytest.mark.parametrize(
    ("allowed", "complaints", "counts"),
    [
        (EXACT, [], EXACT),
        ({"a.py": {"names": 5, "D205": 1, "D209": 4}}, [], EXACT),
        ({**EXACT, "gone.py": {"names": 7}, "new.py": {"names": 1}}, [], EXACT),
        ({"a.py": {"names": 1, "D205": 9}}, [NAMES_OVER_1], {"a.py": {"names": 1, "D205": 1}}),
        ({}, [("names", 2, "0 are allowed: one line 3, some line 8"), ("D205", 1, "0 are allowed: line 1")], {}),
    ],
)
def test_counts_only_fall(allowed: Counts, complaints: list[tuple[str, int, str]], counts: Counts) -> None:
    assert worse(PLACES, allowed) == [f"a.py {RULES[rule].format(count)}, {rest}" for rule, count, rest in complaints]
    assert lowered(PLACES, allowed) == counts


BAD = 'def f(a, b, c, d, e, f):\n    """Do\n    this."""\n    found = 1  # noqa\n    return found\n'
ALL = {"names": 1, "PLR0917": 1, "D205": 1, "D209": 1}


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What a run says as it fails, or nothing."""
    monkeypatch.setattr(sys, "argv", ["style_ratchet", *words])
    try:
        main()
    except SystemExit as stopped:
        return str(stopped)
    return ""


def test_a_project_gets_better_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file may have none, a renamed file keeps its counts, and only --lower writes."""
    for name in style_ratchet.FOLDERS:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(style_ratchet, "PROJECT", tmp_path)
    counts, module = tmp_path / "tools" / "style_counts.json", tmp_path / "demo" / "x.py"
    monkeypatch.setattr(style_ratchet, "COUNTS", counts)
    counts.write_text("{}")
    module.write_text(BAD)
    assert [line.split()[:3] for line in run(monkeypatch, "--lower").splitlines()[:-1]] == [
        *(["demo/x.py", "binds", "1"], ["demo/x.py", "has", "1"], ["demo/x.py", "has", "1"], ["demo/x.py", "has", "1"])
    ]
    stored = json.dumps({"demo/x.py": ALL, "demo/gone.py": {"names": 2}})
    counts.write_text(stored)
    assert run(monkeypatch) == ""
    assert counts.read_text() == stored
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["mv", "demo/x.py", "demo/y.py"]):
        subprocess.run([*git, *words], check=True)
    assert run(monkeypatch, "--lower") == ""
    assert json.loads(counts.read_text()) == {"demo/y.py": ALL}
    (tmp_path / "demo" / "y.py").write_text(BAD.replace("found", "total"))
    assert run(monkeypatch, "--lower") == ""
    assert json.loads(counts.read_text()) == {"demo/y.py": {rule: 1 for rule in ALL if rule != "names"}}
    (tmp_path / "demo" / "y.py").write_text(BAD)
    assert "binds 1 of the names" in run(monkeypatch)
    counts.write_text("<<<<<<< ours")
    assert "is not JSON" in run(monkeypatch)

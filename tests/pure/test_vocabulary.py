"""Words that only this project's authors used are gone from what people read: docs, help texts, error
messages, log lines and pages; most of them from names, comments and docstrings of all code, too.
docs/reference/vocabulary-of-the-code.md says which word is for which idea."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tidemark.cli import app

PROJECT = Path(__file__).resolve().parents[2]
VOCABULARY = PROJECT / "docs" / "reference" / "vocabulary-of-the-code.md"

WORDS = {
    r"told|tells": "said, reported, estimated, emitted",
    r"held(?!\.[`\w])": "stored, contained; of a row its multiplicity",
    r"stands?|stood|standing": "is, applies",
    r"lies?|lying": "is, is located",
    r"apart": "separately, at a distance, on executors",
    r"comes? to": "is, amounts to",
    r"what there is": "the current rows",
    r"counts? no more": "is retracted, is ignored",
    r"knows? (it|them) no more": "no longer knows",
    r"(is|are|was|were) of(?! type)": "belongs to, has, describes",
    r"anew": "again",
    r"amid": "during",
    r"(are|lie) where rows are": "data-driven",
    r"(take|takes|took|taken) back": "retract, retracted",
}
"""What is not written any more, as regular expressions of whole words, with what is written instead."""
FORBIDDEN = re.compile("|".join(rf"\b(?:{word})\b" for word in WORDS))


def prose(text: str) -> str:
    """A page without its code, line for line."""
    text = re.sub(r"^(```|~~~).*?^\1", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ {4,}(?![-*\d]).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    return re.sub(r"`[^`\n]*`", "code", text)


PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "spark_apps/*.md")
    for path in PROJECT.glob(pattern)
    if path.name != "CHANGELOG.md" and path != VOCABULARY and path.parent.name != "releases"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_pages_are_in_words_of_the_field(page: Path) -> None:
    lines = enumerate(prose(page.read_text(encoding="utf-8")).splitlines(), 1)
    assert [f"{number}: {line}" for number, line in lines if FORBIDDEN.search(line)] == []


STORED = {"version outside the history, left by a collector or a writer that stood still"}
"""Reasons in plans of the collector, which are on disk."""


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The sentences in a tree's literals, each with its line; what is inserted into them is a dash. No docstrings."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            skipped.update(id(part.format_spec) for part in node.values if isinstance(part, ast.FormattedValue))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(v.value) if isinstance(v, ast.Constant) else "–" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@cache
def messages() -> list[tuple[str, str]]:
    """Errors, log lines, help texts, texts on pages: all literals that are sentences, each with its place."""
    found = []
    for path in sorted((PROJECT / "include").rglob("*.py")):
        name, tree = path.relative_to(PROJECT / "include").as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        found += [(f"{name}:{line}", text) for line, text in texts(tree)]
    return found


def test_messages_are_in_words_of_the_field() -> None:
    assert len(messages()) > 2000
    private = [(place, text) for place, text in messages() if FORBIDDEN.search(text) and text not in STORED]
    assert [place for place, text in private if FORBIDDEN.search(prose(text))] == []


FOLDERS = ("include", "dags", "plugins", "spark_apps", "tests", "benchmarks", "demo", "tools")
_IN_CODE = (
    r"(?:un)?told|held|apart|anew|amid|lies?|lying|comes? to|what there is|standing|(?:take|takes|took|taken)[ _]back"
)
IN_CODE = re.compile(rf"(?<![a-z])(?:{_IN_CODE})(?![a-z])", re.IGNORECASE)
"""As a word, or as a part of a name."""
KEPT = {
    "tidemark/model/arrangement.py": r"(self|state)\.told\b|\btold(?=[:=])",  # a key of states
    "tidemark/model/full_snapshot.py": r'"told"|`told`',  # an effect in states
    "tidemark/plan/kinds.py": r"state\.told\b",
    "tidemark/arrow/windows.py": r'"_(first|last)_told"',  # columns of windows
    "tidemark/api/opened.py": r"`_(first|last)_told`",
    "tidemark/model/records.py": r"`held`|\bheld: tuple",  # a key of states
    "tidemark/storage/sidecars/ledger.py": r"object\.held\b",
    "tests/": r"state\.told\b|\.told\.remove",  # the same key of states
    "tests/pure/model/test_announced.py": r"\w+\.told\b|(\w+, \d+)\)\.told\b|\btold=|was told as batch",
    "tests/pure/arrow/test_windows.py": r'"_(first|last)_told"',
    "tests/compat/second_reader.py": r'"told"',
    "tests/oracles/written_windows.py": r'"hours_told"',  # a collection that an earlier version wrote
    "benchmarks/": r'each_anew|"written anew, equal rows"|Written anew: other bytes',  # in recorded results
    "tests/simulation/test_benchmarks.py": r'"written anew, equal rows"',
}
"""Names that are stored or printed, which therefore stay, by the file or the folder that has them."""


def test_private_words_are_gone_from_code() -> None:
    """From names, comments and docstrings too. `told` was used for messages, rows, figures and whatever else, `held`
    for batches, masks, entries, states and whatever else."""
    kinds = (".py", ".yaml", ".html", ".css", ".js")
    sources = [path for folder in FOLDERS for path in (PROJECT / folder).rglob("*") if path.suffix in kinds]
    sources.remove(Path(__file__).resolve())
    found = []
    for path in sources:
        name = path.relative_to(PROJECT).as_posix().removeprefix("include/")
        kept = [pattern for begins, pattern in KEPT.items() if name.startswith(begins)]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            rest = reduce(lambda text, pattern: re.sub(pattern, "", text), kept, line)
            found += [f"{name}:{number}: {line}"] if IN_CODE.search(rest) else []
    assert len(sources) > 1400
    assert found == []


def helps(command: Any) -> Iterator[str]:
    """The help of a command, of what it takes, and of the commands below it."""
    yield command.help or ""
    yield from (parameter.help for parameter in command.params if getattr(parameter, "help", None))
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from helps(command.get_command(None, name))


def test_help_is_in_words_of_the_field() -> None:
    texts = list(helps(typer.main.get_command(app)))
    assert len(texts) > 200
    assert [text for text in texts if FORBIDDEN.search(prose(text))] == []


def test_no_message_names_another_projects_package() -> None:
    """`tidemark` on the public index is not this project: from a checkout it is `pip install '.[spark]'`."""
    assert [place for place, text in messages() if re.search(r"install (-\S+ )*'?tidemark", text)] == []


def test_the_page_names_what_it_replaces() -> None:
    replaced = re.findall(r'"([^"]+)"', VOCABULARY.read_text(encoding="utf-8"))
    assert [word for word in WORDS if not any(re.search(rf"\b(?:{word})\b", one) for one in replaced)] == []

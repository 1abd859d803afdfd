"""A kind of windows is one declaration and one kernel: nothing else in the product says its name; and every kind is
among the samples that generic tests take."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.kinds import FAMILIES
from tidemark.model.window.kinds import KINDS, AlignedKind, Kind

pytestmark = pytest.mark.pure

PACKAGE = Path(__file__).resolve().parents[4] / "include" / "tidemark"
LIST = "model/window/kinds/__init__.py"
REGISTRY = "arrow/kernels/windows/aligned/__init__.py"
ALIGNED = [kind for kind in KINDS if issubclass(kind, AlignedKind)]
"""The files of a data-driven kind: its declaration, its law, its plan, its kernel, and who asks which of the two it
is."""


def files_of(kind: type[Kind]) -> list[str]:
    """The files of the product in whose code the class of a kind is named."""
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    found = (path for path, text in texts.items() if kind.__name__ in text and kind.__name__ in _names(text))
    return sorted(str(path.relative_to(PACKAGE)) for path in found)


def _names(text: str) -> set[str]:
    """The names in code, without those in texts and comments."""
    tree = list(ast.walk(ast.parse(text)))
    names = {node.id for node in tree if isinstance(node, ast.Name)}
    names |= {node.attr for node in tree if isinstance(node, ast.Attribute)}
    return names | {node.name for node in tree if isinstance(node, ast.ClassDef | ast.alias)}


@pytest.mark.parametrize("kind", ALIGNED, ids=lambda kind: kind.__name__)
def test_an_aligned_kind_is_a_declaration_and_a_kernel(kind: type[Kind]) -> None:
    """And a line in each of two lists."""
    own = [f"arrow/kernels/windows/aligned/{kind.kind}.py", f"model/window/kinds/{kind.kind}.py"]
    assert files_of(kind) == sorted([*own, LIST, REGISTRY])


def test_every_kind_has_samples() -> None:
    missing = [kind.__name__ for kind in KINDS if kind not in {family.of for family in FAMILIES}]
    assert not missing, "write samples of them in tests/support/kinds.py"
    for family in FAMILIES:
        assert {type(sample.kind) for sample in family.samples} == {family.of}
        assert (family.by_hand is not None) == issubclass(family.of, AlignedKind), family.of

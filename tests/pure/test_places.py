"""Where a derived collection is computed is chosen by one module, which knows no kind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tidemark

pytestmark = pytest.mark.pure

DERIVE = Path(tidemark.__file__).parent / "spark" / "derive"
MODULES = {path.relative_to(DERIVE).as_posix(): ast.parse(path.read_text()) for path in DERIVE.rglob("*.py")}


def attributes_set(module: ast.Module) -> set[str]:
    """The attributes of other objects that a module assigns to."""
    targets = [
        target
        for node in ast.walk(module)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    inside = [one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {
        one.attr
        for one in inside
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id != "self"
    }


def names_used(module: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}


def test_one_module_chooses_the_place() -> None:
    assert {name for name, module in MODULES.items() if "place" in attributes_set(module)} == {"place.py"}


def test_the_module_that_chooses_knows_kinds_by_name_only() -> None:
    """Which rule a kind is computed by, and of which columns, is for the kind to know."""
    imported = {
        alias.name
        for node in ast.walk(MODULES["place.py"])
        if isinstance(node, ast.ImportFrom) and node.module == "tidemark.definition.recipe"
        for alias in node.names
    }
    assert imported == set()


def test_no_place_is_chosen_by_the_name_of_a_kind() -> None:
    kinds = {"Groups", "SlidingWindows", "Sessions", "Joins"}
    users = {name for name, module in MODULES.items() if names_used(module) & kinds}
    assert users == {"place.py"}, "their declaration in KINDS"
    chosen = [node for node in ast.walk(MODULES["place.py"]) if isinstance(node, ast.Name) and node.id in kinds]
    assert len(chosen) == len(kinds), "each stands in KINDS, and nowhere else"


@pytest.mark.parametrize("kind", ["sliding", "sessions"])
def test_data_driven_windows_have_no_aggregates_in_sql(kind: str) -> None:
    """A kernel computes them, of the values that Spark gives of single rows."""
    text = (DERIVE.parents[1] / "definition" / "windows" / f"{kind}.py").read_text()
    assert not any(word in text for word in ("GROUP BY", "OVER (", "aggregate_sql"))

"""Running a notebook's cells in order, as a kernel would, and what they show: text, as it is stored in the notebook."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any


def run(path: Path) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now."""
    notebook: dict[str, Any] = json.loads(path.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            shown = _shown("".join(cell["source"]), names)
            lines = shown.splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if shown else []
    return notebook


def outputs(notebook: dict[str, Any]) -> list[list[str]]:
    """The lines that each cell of code shows."""
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    return [[line for output in cell["outputs"] for line in output["text"]] for cell in cells]


def save(path: Path, notebook: dict[str, Any]) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _shown(source: str, names: dict[str, Any]) -> str:
    """What a cell prints, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if value is not None:
                print(value)
    return printed.getvalue()

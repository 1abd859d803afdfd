"""The how-to for Spark does what it says, all of it as it is printed, on the collection of the page for Python."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from tests.pure.test_how_to_read import BLOCK, HOW_TO, in_a_shell

pytestmark = pytest.mark.spark


def test_the_page_shows_what_happens(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path / "docs"))
    made = next(block for language, block in BLOCK.findall((HOW_TO / "read-from-python.md").read_text()))
    in_a_shell(made)
    # Spark's processes work in folders of their own: the page tells to give an absolute path.
    page = re.sub(r'"(root|copy)(?=[/"-])', rf'"{tmp_path}/\1', (HOW_TO / "read-from-spark.md").read_text())
    page = page.replace('f"copy/', f'f"{tmp_path}/copy/')
    names: dict[str, object] = {"spark": spark}
    runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
    for language, block in BLOCK.findall(page):
        assert language == "python"
        test = parser.get_doctest(block, names, "read-from-spark.md", "read-from-spark.md", 0)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.failures == 0
    assert runner.tries >= 17
    for view in spark.catalog.listTables():
        spark.catalog.dropTempView(view.name)

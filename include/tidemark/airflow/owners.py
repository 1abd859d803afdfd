"""Which DAG file makes a collection's DAG: two that make one take turns in Airflow, and none of them says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidemark.airflow.parsing import collections_folder, file_being_parsed
from tidemark.config.folder import files_of
from tidemark.errors import InvalidUsage

FACTORY = "collection_dags"


@dataclass(frozen=True)
class Factory:
    """A DAG file that makes the DAGs of a folder of collection files, `exclude` excepted."""

    file: Path
    folder: Path
    exclude: frozenset[str]

    def source_of(self, dag_id: str) -> Path | None:
        """The collection file it makes this DAG from, None if it makes none of that id."""
        if dag_id in self.exclude:
            return None
        return next((path for path in files_of(self.folder) if _makes(path, dag_id)), None)


def refuse_second_maker(dag_id: str) -> None:
    """Raise InvalidUsage, with both files, if the DAG file being parsed makes a DAG that a call of `collection_dags`
    in the DAGs folder makes too. Nothing happens where no DAG file is being parsed."""
    file = file_being_parsed()
    if file is None:
        return
    for factory in _factories(file):
        if source := factory.source_of(dag_id):
            raise InvalidUsage(
                f"{file} makes the DAG {dag_id}, and {factory.file} makes it too, from {source}: they would take "
                f"turns. Write `dag: own` into {source.name}, or {FACTORY}(exclude=[{dag_id!r}]) into "
                f"{factory.file.name}, or give yours a dag_id of its own"
            )


def _factories(file: Path) -> Iterator[Factory]:
    """The factories of the DAGs folder, and of the folder of `file` where that is another (a DAG bundle)."""
    from airflow.configuration import conf
    from airflow.utils.file import list_py_file_paths

    folders = [Path(conf.get_mandatory_value("core", "dags_folder"))]
    if folders[0] not in file.parents:
        folders.append(file.parent)
    for path in sorted({path for folder in folders for path in list_py_file_paths(folder)}):
        yield from _calls(Path(path))


def _calls(file: Path) -> Iterator[Factory]:
    """The factories in a file, as it is written: a folder or names that are calculated cannot be known, and say
    nothing."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text) if FACTORY in text else ast.Module([], [])
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return  # Airflow says what is wrong about it
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or FACTORY not in (
            getattr(node.func, "id", ""),
            getattr(node.func, "attr", ""),
        ):
            continue
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        folder = node.args[0] if node.args else named.get("folder", ast.Constant(None))
        try:
            literal = ast.literal_eval(folder)
            exclude = ast.literal_eval(named.get("exclude", ast.Tuple([], ast.Load())))
        except ValueError:
            continue
        yield Factory(file, collections_folder(literal, file=file), frozenset(map(str, exclude)))


def _makes(path: Path, name: str) -> bool:
    from tidemark.config.document import read
    from tidemark.config.text import text_of

    try:
        content = read(path).content if name in text_of(path) else None
    except InvalidUsage:
        return False
    return isinstance(content, dict) and content.get("name") == name and content.get("dag") != "own"

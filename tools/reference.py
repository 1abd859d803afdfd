"""Writes docs/reference from the code it describes: `make reference`. A test finds what was not written anew.

collection-file.md   the fields of config/declaration.py, with the strings below them
cli.md               the commands, arguments and options that `tidemark --help` knows
errors.md            the classes of errors.py, with their exit codes
python.md            what `import tidemark` offers, with signatures and docstrings
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tidemark import errors
from tidemark.api import answer, asked, hold, opened, opening
from tidemark.cli import app
from tidemark.config import declaration

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "<!-- Written by tools/reference.py (`make reference`); change the code it describes. -->\n"


def pages() -> dict[str, str]:
    """The text of each page, by its name in docs/reference."""
    return {
        "collection-file.md": collection_file(),
        "cli.md": cli(),
        "errors.md": error_classes(),
        "python.md": python(),
    }


# The collection file.

_SECTIONS = {
    "The file": declaration.Declaration,
    "`source`": declaration.SourceSection,
    "`columns`, each": declaration.ColumnSection,
    "`time`, `event_time`": declaration.ByColumn,
    "`source.ready`": declaration.Marker,
    "`late`": declaration.LatePolicy,
    "`late.reemit`": declaration.Reemit,
}

_FILE = """\
One YAML file in `include/collections` is one collection and one DAG; the demo's is
[flights.yaml](../../include/collections/flights.yaml). A field that is not known, or holds something else than is said
here, is refused with its path, its line and the nearest valid field, and the other files' DAGs stay.

Durations are `90s`, `15m`, `12h`, `7d`; instants are dates or ISO 8601 in UTC.
"""


def collection_file() -> str:
    texts = _field_texts(declaration)
    lines = ["# The collection file\n", WRITTEN, _FILE]
    for title, section in _SECTIONS.items():
        lines += [
            f"## {title}\n",
            f"{_one_line(section.__doc__)}\n",
            "| field | default | what it says |",
            "|---|---|---|",
        ]
        for name, field in section.model_fields.items():
            lines.append(
                f"| `{name}` | {_default(field)} | {_cell(texts[section.__name__, name])}{_choices(section, name)} |"
            )
        lines.append("")
    return "\n".join(lines)


def _field_texts(module: ModuleType) -> dict[tuple[str, str], str]:
    """The string below each field of each class, by their names."""
    texts = {}
    for found in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(found, ast.ClassDef):
            for field, text in zip(found.body, found.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    texts[found.name, ast.unparse(field.target)] = str(text.value.value)
    return texts


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if isinstance(default, BaseModel):
        written = default.model_dump(exclude_defaults=False, exclude_none=True)
        return ", ".join(
            f"`{inner or name}`" if isinstance(inner, str) else f"`{name}`" for name, inner in written.items()
        )
    plain = {None: "none", True: "`true`", False: "`false`"}
    if default in ({}, []) or (isinstance(default, bool) or default is None):
        return plain.get(default, "none") if isinstance(default, bool | None) else "none"
    return f"`{getattr(default, 'policy', default)}`"


def _choices(section: type[BaseModel], name: str) -> str:
    """What a field with a fixed set of values may hold."""
    found = re.search(r"Literal\[([^\]]*)\]", str(section.__annotations__[name]))
    return f" One of {found[1].replace(chr(34), '`').replace(chr(39), '`')}." if found else ""


# The command line.

_COMMANDS = """\
`--root` and `--landing` may be said by TIDEMARK_ROOT and TIDEMARK_LANDING (see [settings](settings.md)); `--json` gives
one JSON document on standard output, refusals as well.
"""


def cli() -> str:
    group: Any = typer.main.get_command(app)
    lines = ["# The command line\n", WRITTEN, f"{_one_line(sys.modules['tidemark.cli.main'].__doc__)}\n", _COMMANDS]
    for panel, commands in _by_panel(group).items():
        lines.append(f"## {panel}\n")
        for command in commands:
            lines += _command(command, "tidemark")
    return "\n".join(lines)


_EVERYWHERE = ("help", "root", "landing", "json")
"""Options that every command has; said once."""


def _by_panel(group: Any) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {}
    for command in group.commands.values():
        panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(command)
    return panels


def _command(command: Any, path: str) -> Iterator[str]:
    path = f"{path} {command.name}"
    if hasattr(command, "commands"):
        for inner in command.commands.values():
            yield from _command(inner, path)
        return
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    shown = (_metavar(each) if each.required else f"[{_metavar(each)}]" for each in arguments)
    yield f"### `{' '.join([path, *shown])}`\n"
    yield f"{_plain(command.help)}\n"
    rows = [parameter for parameter in command.params if parameter.name not in _EVERYWHERE and _help(parameter)]
    if rows:
        yield "| | |"
        yield "|---|---|"
        yield from (f"| {_names(parameter)} | {_cell(_plain(_help(parameter)))} |" for parameter in rows)
        yield ""


def _help(parameter: Any) -> str:
    return str(getattr(parameter, "help", None) or "")


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_metavar(parameter)}`"
    value = "" if parameter.is_flag else f" {parameter.metavar or _value(parameter.type_descriptor.annotation)}"
    return ", ".join(f"`{name}{value}`".replace("|", "\\|") for name in (*parameter.opts, *parameter.secondary_opts))


def _value(kind: Any) -> str:
    return "|".join(one.value for one in kind) if issubclass(kind, Enum) else kind.__name__.upper()


# Errors.

_ERRORS = """\
Grouped by what to do next. On the command line and in a task's log an error is one line that says what was wrong and
what to do; with `--json` it is `{"error": {"kind": …, "message": …}}`, and `kind` is the name below. A Spark app ends
with the exit code given here: after 75 the same call may be made again and should be, as Airflow's retries do; after 1
a retry does not help, and the task fails without one. The command line ends with 1 for all of them, and with 2 for a
wrong command line.
"""


def error_classes() -> str:
    lines = ["# Errors\n", WRITTEN, _ERRORS, "| kind | exit code | what it means |", "|---|---|---|"]
    for found in _tree(errors.TidemarkError):
        depth = "↳ " if found.__bases__[0] is not errors.TidemarkError else ""
        lines.append(f"| {depth}`{found.__name__}` | {found.exit_code} | {_cell(_one_line(found.__doc__))} |")
    return "\n".join(lines) + "\n"


def _tree(base: type[errors.TidemarkError]) -> Iterator[type[errors.TidemarkError]]:
    for found in base.__subclasses__():
        if found.__module__ == errors.__name__:
            yield found
            yield from _tree(found)


# Python.

_PYTHON = """\
`import tidemark`; [how to read from Python](../how-to/read-from-python.md) goes through it. What is not on this page is
Tidemark's own and may change with any release; so is what says so here. Errors are a `TidemarkError` each, by
[what to do next](errors.md).

- A *Time* is ISO 8601 text, a date (its first instant), a datetime (UTC if it names no zone) or whole microseconds
  since 1970.
- A *Duration* is text like `30m` or `7d`, a timedelta or whole microseconds.
- A *Where* is a condition as text, in the language of `delete_when`, or a dict of values by column, in which None is
  null and a list is any of them.
"""
_OFFERED = (opened.OpenCollection, answer.Answer, asked.AsOf, asked.Changes, hold.Hold)
"""The classes, in the order of the page."""


def python() -> str:
    lines = ["# Python\n", WRITTEN, _PYTHON]
    for function in (opening.open, opening.collections):
        lines.append(f"## `tidemark.{function.__name__}{_signature(function)}`\n\n{_docstring(function)}\n")
    for offered in _OFFERED:
        lines.append(f"## {offered.__name__}\n\n{_docstring(offered)}\n")
        lines += _members(offered)
    return "\n".join(lines)


def _members(offered: type) -> Iterator[str]:
    """What a class itself has that is public and says what it is."""
    for name, member in vars(offered).items():
        if name.startswith("_") or not member.__doc__:
            continue
        if isinstance(member, property):
            yield f"### `.{name}`: `{member.fget.__annotations__['return']}`\n\n{_docstring(member)}\n"
        else:
            yield f"### `.{name}{_signature(member)}`\n\n{_docstring(member)}\n"


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    shown = [parameter for parameter in found.parameters.values() if parameter.name != "self"]
    return str(found.replace(parameters=shown)).replace("'", "")


def _docstring(of: Any) -> str:
    return inspect.cleandoc(of.__doc__ or "")


def _plain(text: str | None) -> str:
    """Without rich's markup."""
    return re.sub(r"\[/?(bold|dim|italic|cyan|green|red|yellow)[^\]]*\]", "", text or "").strip()


def _one_line(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"written docs/reference/{name}")

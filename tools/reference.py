"""Writes docs/reference from the code it describes: `make reference`. A test finds what was not written again.

collection-file.md   the fields of config/declaration.py and its sections, with the strings below them
cli.md               the commands, arguments and options that `tidemark --help` knows
errors.md            the classes of errors.py, with their exit codes
python.md            what `import tidemark` offers, with signatures and docstrings
airflow.md           what `tidemark.airflow` offers, the tasks, their defaults, and the pages of the plugin
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from tidemark import errors
from tidemark.api import answer, appender, appending, hold, opened, opening, tabular, windowed
from tidemark.api import reads as asked
from tidemark.api.dataset import CollectionDataset
from tidemark.api.export import Exported
from tidemark.api.sql.answer import SqlAnswer
from tidemark.api.sql.asking import sql
from tidemark.cli import app
from tidemark.config import airflow as airflow_section
from tidemark.config import batches, declaration, publish, windows
from tidemark.config.values import duration as parse_length
from tidemark.config.windows_kinds import KIND_SECTIONS
from tidemark.datasource.views import register
from tidemark.jobs.steps.declared import STEPS
from tidemark.model.instant import format_duration

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
WRITTEN = "<!-- Written by tools/reference.py (`make reference`); change the code it describes. -->\n"


def pages() -> dict[str, str]:
    """The text of each page, by its name in docs/reference."""
    return {
        "collection-file.md": collection_file(),
        "cli.md": cli(),
        "errors.md": error_classes(),
        "python.md": python(),
        "airflow.md": airflow(),
    }


# The collection file.

_SECTIONS = {
    "Every collection": declaration.Common,
    "A landed collection": declaration.Declaration,
    "A derived collection": declaration.DerivedDeclaration,
    "`windows`": windows.WindowsSection,
    **{f"`windows.{name}`": one.section for name, one in KIND_SECTIONS.items()},
    "`windows.late`": windows.LateRows,
    "`windows.late.reemit`": windows.ReemitSection,
    "`aggregates`, each": windows.AggregateSection,
    "`source`": declaration.SourceSection,
    "`columns`, each": declaration.ColumnSection,
    "`time`, `event_time`": declaration.ByColumn,
    "`source.csv`": declaration.CsvSection,
    "`source.ready`": declaration.Marker,
    "`late`": declaration.LatePolicy,
    "`late.reemit`": declaration.Reemit,
    "`airflow`": airflow_section.AirflowSection,
    "`airflow.notify`": airflow_section.NotifySection,
    "`airflow.notify`, each function": airflow_section.CallSection,
    "`airflow.after`": airflow_section.AfterSection,
    "`airflow.after`, each function": airflow_section.TaskSection,
    "`batches`": batches.BatchesSection,
    "`batches.adaptive`": batches.AdaptiveSection,
    "`batches.rate_change`": batches.RateSection,
    "`publish`": publish.PublishSection,
    "`publish.iceberg`": publish.IcebergSection,
    "`publish.delta`": publish.DeltaSection,
}

_FILE = """\
One YAML file in `include/collections` is one collection and one DAG; the demo's is
[flights.yaml](../../include/collections/flights.yaml). A field that is not known, or holds something else than is said
here, is refused with its path, its line and the nearest valid field, and the other files' DAGs stay.

A collection is *landed*, where files of changes arrive (`source`), or *derived*, where it is computed from other
collections (`from`); what only the other has is refused by name. The inputs of a derived collection are declared in the
same folder, and none of them is computed from it.

Durations are `90s`, `15m`, `12h`, `7d`; instants are dates or ISO 8601 in UTC.
"""


_OF_EVERY_COLLECTION = declaration.Common.model_fields


def collection_file() -> str:
    texts = {
        **{**_field_texts(declaration), **_field_texts(windows)},
        **{**_field_texts(batches), **_field_texts(airflow_section)},
        **{**_field_texts(publish), **_kind_texts()},
    }
    lines = ["# The collection file\n", WRITTEN, _FILE]
    for title, section in _SECTIONS.items():
        lines += [
            f"## {title}\n",
            f"{_one_line(section.__doc__)}\n",
            "| field | default | what it says |",
            "|---|---|---|",
        ]
        names = {field.alias or name: name for name, field in section.model_fields.items()}
        for written, field in declaration.fields_of(section).items():
            name = names[written]
            if (section.__name__, name) not in texts and name in _OF_EVERY_COLLECTION:
                continue
            text = _text_of(section, name, texts)
            lines.append(f"| `{written}` | {_default(field)} | {_cell(text)}{_choices(section, name)} |")
        lines.append("")
    return "\n".join(lines)


def _text_of(section: type[BaseModel], name: str, texts: dict[tuple[str, str], str]) -> str:
    """The text of a field: the string below it, in the section or one it is based on; or its description."""
    found = (texts[base.__name__, name] for base in section.__mro__ if (base.__name__, name) in texts)
    return next(found, "") or section.model_fields[name].description or ""


def _kind_texts() -> dict[tuple[str, str], str]:
    """The string below each field of each kind of windows, by the names of its section and of the field there."""
    texts = {}
    for one in KIND_SECTIONS.values():
        below = _field_texts(sys.modules[one.of.__module__])
        for written, own in one.attributes.items():
            texts[one.section.__name__, written] = below[one.of.__name__, own]
    return texts


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
        dumped = default.model_dump(exclude_defaults=False, exclude_none=True)
        written = {name: inner for name, inner in dumped.items() if inner != []}
        shown = (f"`{inner or name}`" if isinstance(inner, str) else f"`{name}`" for name, inner in written.items())
        return ", ".join(shown) or "none"
    if default == "":
        return "none"
    plain = {None: "none", True: "`true`", False: "`false`"}
    if default in ({}, []) or (isinstance(default, bool) or default is None):
        return plain.get(default, "none") if isinstance(default, bool | None) else "none"
    if default and any(isinstance(of, BeforeValidator) and of.func is parse_length for of in field.metadata):
        return f"`{format_duration(default)}`"
    return f"`{getattr(default, 'policy', default)}`"


def _choices(section: type[BaseModel], name: str) -> str:
    """What a field with a fixed set of values may hold."""
    written = next(of[name] for base in section.__mro__ if name in (of := getattr(base, "__annotations__", {})))
    found = re.search(r"Literal\[([^\]]*)\]", str(written))
    return f" One of {found[1].replace(chr(34), '`').replace(chr(39), '`')}." if found else ""


# The command line.

_COMMANDS = """\
`--root` and `--landing` may be set by TIDEMARK_ROOT and TIDEMARK_LANDING (see [settings](settings.md)); `--json` gives
one JSON document on standard output, refusals as well. A step whose kernels read something says under `work` where that
was done, what it was estimated to take, and what it took ([decision 0072](../decisions/0072-one-rule-of-size.md)).
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
    for command in map(partial(group.get_command, None), group.list_commands(None)):
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
- A *Where* is a [condition](../how-to/conditions.md) as text, or a dict of values by column, in which None is
  null and a list is any of them.
"""
_OFFERED = (
    *(opened.OpenCollection, tabular.Tabular, answer.Answer, asked.AsOf, asked.Changes, windowed.WindowRows),
    *(SqlAnswer, CollectionDataset, Exported, hold.Hold, appender.Appender, appender.LandedChunk),
)
"""The classes, in the order of the page."""


def python() -> str:
    lines = ["# Python\n", WRITTEN, _PYTHON]
    for function in (opening.open, opening.collections, sql, register, appending.appender):
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


# Airflow. Imported here only: it reads its environment when it is.

_AIRFLOW = """\
For DAG files: `from tidemark.airflow import …`. [DAGs of your own](../how-to/own-dags.md) and
[tasks of your own](../how-to/add-a-task.md) use it. A `collection` is the path of its file, or a `Collection` declared
in Python; for holds and assets it is its name. Whatever a task raises ends it without a retry where a retry cannot
help ([errors](errors.md)).
"""
_TASKS = """\
What a step takes is an argument of its group or operator, a value or a template. Every one of them also takes the
arguments of Airflow's operators (`retries`, `pool`, `trigger_rule`, …), and those of AppOperator. `step_group` makes
any of them by its name.
"""
_WHENS = {"EACH_RUN": "each run", "BEHIND": "behind a step", "MAINTENANCE": "maintenance", "ASKED": "when asked for"}
_OFFERS = {
    "DAGs": ("tidemark_dag", "batches_dag", "collection_dags", "check_collection_files", "maintenance_dag"),
    "Groups": (
        "TidemarkTaskGroup",
        "step_group",
        "ingest_group",
        "seal_group",
        "drain_group",
        "compact_group",
        "maintenance_group",
    ),
    "Operators": (
        "HoldOperator",
        "ReleaseHoldOperator",
        "PublishOperator",
        "MaintenanceOperator",
        "OnTimeOperator",
        "AppOperator",
    ),
    "Functions as tasks": ("with_changes", "with_as_of", "tidemark_task"),
    "Waiting": ("wait_for_seal",),
    "Notices": ("Notice",),
    "Runs and assets": ("window_of", "intervals_of", "sealed_by", "asset_of", "intervals_asset_of"),
}
_PLUGIN = """\
Tidemark's plugin puts them below `{prefix}` of the API server, read-only. Every one needs a login of
Airflow's that may see its site; what else the user must be allowed is what Airflow's auth manager says.
"""
_LAUNCHERS = """\
`launcher` is {launchers}; without it `TIDEMARK_LAUNCHER` says, and [settings](settings.md) what else there is: the
Spark master while there is no connection `{connection}`, the zip, the resident server's place, patience and Spark
settings. With `resident` a Spark is running already, so these arguments have no effect, and the log says so: {only}.
"""


def airflow() -> str:
    from tidemark import airflow as offers
    from tidemark.airflow import app_operator
    from tidemark.airflow.links import PREFIX

    lines = ["# Airflow\n", WRITTEN, _AIRFLOW]
    for title, names in _OFFERS.items():
        lines += [f"## {title}\n", *(text for name in names for text in _offer(name, getattr(offers, name)))]
    lines += ["## Tasks\n", _TASKS, *_tasks()]
    only = ", ".join(f"`{name}`" for name in app_operator.SUBMIT_ONLY)
    launchers = " or ".join(f"`{name}`" for name in app_operator.LAUNCHERS)
    lines += ["## Launchers\n", _LAUNCHERS.format(launchers=launchers, connection=app_operator.CONNECTION, only=only)]
    lines += ["## Defaults of tasks\n", *_defaults()]
    lines += ["## Params of a run\n", *_params()]
    lines += ["## Pages\n", _PLUGIN.format(prefix=PREFIX), *_pages()]
    return "\n".join(lines)


def _offer(name: str, offered: Any) -> Iterator[str]:
    is_operator = hasattr(offered, "template_fields")
    called = _operator_signature(offered) if is_operator else _signature(offered)
    yield f"### `{name}{called}`\n\n{_docstring(offered)}\n"
    if is_operator:
        given = _airflows(offered).template_fields
        if fields := [field for field in vars(offered).get("template_fields", ()) if field not in given]:
            yield f"Templates: {', '.join(f'`{field}`' for field in fields)}.\n"
        for own, member in vars(offered).items():
            if isinstance(member, classmethod):
                bound = getattr(offered, own)
                yield f"#### `{name}.{own}{_signature(bound)}`\n\n{_docstring(bound)}\n"


def _operator_signature(operator: type) -> str:
    """Its arguments, and the class whose others it takes: one of Airflow's, or another on the page."""
    own: list[inspect.Parameter] = []
    for base in operator.__mro__:
        if base is operator or base.__name__.startswith("_"):
            parameters = inspect.signature(base).parameters.values()
            own[:0] = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
        elif base.__name__ in _OFFERS["Operators"] or base is _airflows(operator):
            break
    return f"({_unquoted(', '.join(['*', *map(str, own), f'**arguments of {base.__name__}']))})"


def _airflows(operator: type) -> Any:
    return next(found for found in operator.__mro__ if not found.__module__.startswith("tidemark."))


def _tasks() -> Iterator[str]:
    from tidemark.airflow.steps import declared_by

    yield "| step | when | takes | gate behind it | what it does |\n|---|---|---|---|---|"
    for step in STEPS.values():
        takes = "<br>".join(f"`{name}`: {_cell(taken.help)}" for name, taken in declared_by(step).items()) or "–"
        gate = f"`gate_{step.gate}`" if step.gate else "–"
        yield f"| `{step.name}` | {_WHENS[step.when.name]} | {takes} | {gate} | {_cell(step.docs)} |"
    yield ""


def _defaults() -> Iterator[str]:
    from tidemark.airflow import steps

    yield "They apply where neither the task nor `default_args` of its DAG or group says otherwise.\n"
    yield "| argument | default |\n|---|---|"
    yield from (f"| `{name}` | {value} |" for name, value in steps.STEP_DEFAULTS.items())
    yield ""


def _params() -> Iterator[str]:
    from tidemark.airflow import factory

    yield "Of DAGs that `tidemark_dag` and `collection_dags` make; all may be left empty.\n"
    yield "| param | what it says |\n|---|---|"
    yield from (f"| `{name}` | {_cell(param.schema['description_md'])} |" for name, param in factory._params().items())
    yield ""


def _pages() -> Iterator[str]:
    from tidemark.airflow.web.app import ROUTES

    yield "| page | what it shows | what the user must be allowed |\n|---|---|---|"
    for route in ROUTES:
        yield f"| `{route.path}` | {route.shows} | {route.may} |"
    yield ""


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    shown = [parameter for parameter in found.parameters.values() if parameter.name != "self"]
    return _unquoted(str(found.replace(parameters=shown)))


def _unquoted(signature: str) -> str:
    """Annotations as they are written; defaults keep their quotes."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)


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

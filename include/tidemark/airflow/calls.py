"""Functions that a collection file names, imported in Airflow's processes only: when they are called, and when files
are checked."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidemark.airflow import settings
from tidemark.airflow.location import Location
from tidemark.airflow.parsing import BESIDE, collections_folder
from tidemark.config.airflow import NotifySection
from tidemark.config.folder import printable
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage, listed

Loc = tuple[str | int, ...]
_SURVIVED = 77
"""The exit code of a child that came to its own end."""


def imported(name: str) -> Any:
    """What `module:name` names, of a module in a folder of the team's code; of another one only Airflow's notifiers.

    InvalidUsage, in one line, where it cannot be imported, is not there or is somebody else's function.
    """
    module, _, attribute = name.partition(":")
    invalidate_caches()  # the file may be younger than the process that forked this one
    theirs = _is_theirs(module)
    target = _attribute(name, module, attribute)
    if not theirs and not is_notifier(target):
        raise InvalidUsage(
            f"{name}: the module {module} is not in a folder of your code, {listed(map(printable, code_folders()))}; "
            "of others only notifiers of Airflow can be named. Wrap it in a function of yours, or let the deployment "
            "name its folder in TIDEMARK_FUNCTIONS"
        )
    return target


def code_folders() -> list[Path]:
    """The folders in which a team's code is.

    `dags`, `plugins` and `include` of the project and beside the collection files, Airflow's folders of DAGs and
    plugins, its bundles, and those of TIDEMARK_FUNCTIONS.
    """
    from airflow.configuration import conf

    projects = {settings.home(), *_projects_of(collections_folder())}
    bundles: Any = conf.getjson("dag_processor", "dag_bundle_config_list", fallback=[]) or []
    named = [
        *(project / part for project in sorted(projects) for part in ("dags", "plugins", "include")),
        conf.get("core", "dags_folder", fallback=""),
        conf.get("core", "plugins_folder", fallback=""),
        conf.get("dag_processor", "dag_bundle_storage_path", fallback="")
        or Path(tempfile.gettempdir(), "airflow", "dag_bundles"),
        *((bundle.get("kwargs") or {}).get("path") for bundle in bundles if isinstance(bundle, dict)),
        *settings.functions(),
    ]
    return list(dict.fromkeys(Path(folder).resolve() for folder in named if folder and Path(folder).is_dir()))


def _projects_of(folder: Path) -> list[Path]:
    """The project whose collection files are in a folder, if that is laid out as one."""
    return [folder.parents[1]] if folder.parts[-2:] == BESIDE.parts else []


def _is_theirs(module: str) -> bool:
    """Whether a module is in a folder of a team's code, by where its package is. Nothing is imported."""
    package = module.partition(".")[0]
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return True  # the import says that there is none
    places = [spec.origin] if spec.has_location and spec.origin else [*(spec.submodule_search_locations or ())]
    folders = code_folders()
    return (
        package != "tidemark"
        and bool(places)
        and all(any(Path(place).resolve().is_relative_to(folder) for folder in folders) for place in places)
    )


def _attribute(name: str, module: str, attribute: str) -> Any:
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise InvalidUsage(
                f"{name}: Airflow finds no module {error.name}; put it into a folder of PYTHONPATH, as `include`"
            ) from None
        raise InvalidUsage(f"{name}: cannot be imported: {error}") from None
    except SystemExit:
        raise InvalidUsage(f"{name}: cannot be imported: the module ends the process") from None
    except Exception as error:
        raise InvalidUsage(f"{name}: cannot be imported: {type(error).__name__}: {error}") from None
    try:
        return getattr(found, attribute)
    except AttributeError:
        names = [one for one in vars(found) if not one.startswith("_")]
        raise InvalidUsage(f"{name}: the module {module} has no {attribute}{nearest(attribute, names)}") from None


def is_notifier(found: Any) -> bool:
    """Whether it is one of Airflow's notifiers: a class, or an object of one."""
    from airflow.sdk.bases.notifier import BaseNotifier

    return isinstance(found, BaseNotifier) or (isinstance(found, type) and issubclass(found, BaseNotifier))


def check_notifier(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidUsage where a name is no function that takes a notice and these arguments, and no notifier."""
    found = imported(name)
    if not is_notifier(found):
        _check_callable(name, found, object(), arguments=arguments)
    elif isinstance(found, type):
        _check_callable(name, found, arguments=arguments)
    elif arguments:
        raise InvalidUsage(f"{name} is a notifier already; give its arguments {', '.join(arguments)} where it is made")


def check_task(name: str) -> None:
    """Raise InvalidUsage where a name is no function that takes what a task is handed."""
    _check_callable(name, imported(name), object(), arguments={})


def _check_callable(name: str, found: Any, *given: object, arguments: Mapping[str, Any]) -> None:
    if not callable(found):
        raise InvalidUsage(f"{name} is no function, but a {type(found).__name__}")
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # written in C: it is known once it is called
        return
    try:
        signature.bind(*given, **arguments)
    except TypeError as error:
        raise InvalidUsage(f"{name}{signature} cannot be called: {error}") from None


def check_survivable(name: str) -> None:
    """Raise InvalidUsage where importing the module of `module:name` ends the process.

    Tried in a child, as whoever looks at all files would end with it, and say nothing of the others. One that is
    imported already is not tried.
    """
    module = name.partition(":")[0]
    if module in sys.modules or not _is_theirs(module):
        return
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            import_module(module)
        os._exit(_SURVIVED)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:  # Airflow ends a parse that takes too long
        os.kill(child, signal.SIGKILL)
        raise
    if os.waitstatus_to_exitcode(status) != _SURVIVED:
        raise InvalidUsage(f"{name}: cannot be imported: the module ends the process")


def wrong_names(location: Location) -> Iterator[tuple[Loc, InvalidUsage]]:
    """The names in a collection's file that are wrong, and where they are. Imports all that are named."""
    said = location.airflow
    for event in NotifySection.model_fields:
        for at, call in enumerate(getattr(said.notify, event)):
            try:
                check_survivable(call.call)
                check_notifier(call.call, call.arguments)
            except InvalidUsage as error:
                yield ("airflow", "notify", event, at), error
    for at, task in enumerate(said.after.seal):
        try:
            check_survivable(task.call)
            check_task(task.call)
        except InvalidUsage as error:
            yield ("airflow", "after", "seal", at), error


def names_anything(location: Location) -> bool:
    """Whether a collection's file names functions."""
    said = location.airflow
    return bool(said.after.seal or any(getattr(said.notify, event) for event in NotifySection.model_fields))

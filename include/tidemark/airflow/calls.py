"""Functions that a collection file names, imported in Airflow's processes only: when they are called, and when files
are checked."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module, invalidate_caches
from typing import Any

from tidemark.airflow.location import Location
from tidemark.config.airflow import NotifySection
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage

Loc = tuple[str | int, ...]


def imported(name: str) -> Any:
    """What `module:name` names. InvalidUsage, in one line, where it cannot be imported or is not there."""
    module, _, attribute = name.partition(":")
    invalidate_caches()  # the file may be younger than the process that forked this one
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise InvalidUsage(
                f"{name}: Airflow finds no module {error.name}; put it into a folder of PYTHONPATH, as `include`"
            ) from None
        raise InvalidUsage(f"{name}: cannot be imported: {error}") from None
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


def wrong_names(location: Location) -> Iterator[tuple[Loc, InvalidUsage]]:
    """The names in a collection's file that are wrong, and where they are. Imports all that are named."""
    said = location.airflow
    for event in NotifySection.model_fields:
        for at, call in enumerate(getattr(said.notify, event)):
            try:
                check_notifier(call.call, call.arguments)
            except InvalidUsage as error:
                yield ("airflow", "notify", event, at), error
    for at, task in enumerate(said.after.seal):
        try:
            check_task(task.call)
        except InvalidUsage as error:
            yield ("airflow", "after", "seal", at), error


def names_anything(location: Location) -> bool:
    """Whether a collection's file names functions."""
    said = location.airflow
    return bool(said.after.seal or any(getattr(said.notify, event) for event in NotifySection.model_fields))

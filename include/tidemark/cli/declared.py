"""The arguments of a step as those of its command: what a declaration says, as Typer understands it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer

from tidemark.jobs.steps.declared import LANDING
from tidemark.jobs.steps.step import Argument, Step


def declared(step: Step) -> dict[str, Argument]:
    """The arguments a shell is asked for, by name. The landing is a global option."""
    return {argument.name: argument for argument in step.arguments if argument is not LANDING}


def parameters(function: Callable[..., None], step: Step | None = None) -> list[inspect.Parameter]:
    """The parameters of a command, less its call: of a step's arguments as they are declared, wherever the function has
    them. TypeError if it lacks one."""
    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    named = declared(step) if step else {}
    if lacking := named.keys() - {parameter.name for parameter in own}:
        raise TypeError(f"{function.__name__} does not take {', '.join(sorted(lacking))} of step {step and step.name}")
    return [
        as_parameter(named[parameter.name])
        if parameter.name in named
        else parameter.replace(annotation=hints[parameter.name])
        for parameter in own
    ]


def as_parameter(argument: Argument) -> inspect.Parameter:
    """The option of one argument, or its place where it is required. Its text is made a value when the command runs."""
    kind = inspect.Parameter.KEYWORD_ONLY
    text: Any = argument.choices or str
    if argument.required:
        place = typer.Argument(metavar=argument.metavar, help=argument.help)
        return inspect.Parameter(argument.name, kind, annotation=Annotated[text, place])
    option = argument.shell_option or argument.option
    if argument.flag:
        flag = typer.Option(option, help=argument.help)
        return inspect.Parameter(argument.name, kind, annotation=Annotated[bool, flag], default=False)
    given = typer.Option(option, envvar=argument.environ, metavar=argument.metavar, help=argument.help)
    optional: Any = text if argument.default is not None else text | None
    return inspect.Parameter(argument.name, kind, annotation=Annotated[optional, given], default=argument.default)


def values(step: Step | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a command was given, with a step's arguments as values. InvalidUsage for a text that is none."""
    named = declared(step) if step else {}
    return {name: named[name].value(given) if name in named else given for name, given in options.items()}

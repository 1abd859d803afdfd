"""Mistakes made on purpose in one line of the product, each with a law of the suite that must notice it.

A law that no longer fails with its mutant has lost its sense. A mutant whose line has changed fails, too: write it
again for the line that decides the same now.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType

import pytest

from tidemark.errors import TidemarkError

CAUGHT = (AssertionError, pytest.fail.Exception, TidemarkError)
"""How a law fails: by what it asserts, by an error that it expects and does not get, or by one that it gets."""


@dataclass(frozen=True)
class Mutant:
    """A mistake that somebody could make.

    Attributes:
        name: What goes wrong.
        function: Where.
        line: What the function says there, once.
        mistake: What it says instead.
        law: A test that passes without the mistake and fails with it.
    """

    name: str
    function: Callable[..., object]
    line: str
    mistake: str
    law: Callable[..., object]


def check_caught(mutant: Mutant, law: Callable[[], object], patch: pytest.MonkeyPatch) -> None:
    """Fail unless the law passes, and fails once the mistake is made."""
    law()
    # The code is replaced, not the function: whoever imported it by name has the mutant, too.
    patch.setattr(mutant.function, "__code__", _mutated(mutant))
    with pytest.raises(CAUGHT):
        law()


def _mutated(mutant: Mutant) -> CodeType:
    function = mutant.function
    assert isinstance(function, FunctionType)
    source = textwrap.dedent(inspect.getsource(function))
    count = source.count(mutant.line)
    assert count == 1, f"{function.__qualname__} says {mutant.line!r} {count} times: write the mutant again"
    module = ast.parse(source.replace(mutant.line, mutant.mistake))
    (definition,) = module.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list.clear()
    names: dict[str, FunctionType] = {}
    exec(compile(module, inspect.getfile(function), "exec"), function.__globals__, names)
    return names[function.__name__].__code__

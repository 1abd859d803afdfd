"""Definitions in Python: a function of DataFrames, by the names of the inputs, that answers with one.

`python: delays:by_carrier` is the function `by_carrier` of the module `delays` in the folder of definitions
(user_code.py), which is shipped with the package. What of it runs on executors travels with the query, so that no other
file of its name is run there. It is distinguished from its earlier self by its
`version` alone. Where it declares `by:`, its answer for some values of these columns must depend on the rows of the
inputs with these values only; so it is called with these rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.errors import InvalidUsage, TidemarkError, plain_line
from tidemark.model.derived import Definition
from tidemark.spark.derive import user_code
from tidemark.spark.derive.here.diff import Updates, compared_with_own
from tidemark.spark.derive.raised import message_of
from tidemark.spark.derive.touched import Touched, named, touched_of
from tidemark.spark.derive.views import Views


def function_of(name: str, definition: Definition) -> Callable[[Mapping[str, DataFrame]], Any]:
    """The function of a definition. InvalidUsage, with what is wrong, where there is none."""
    file, called = user_code.file_of(name, definition), definition.function.partition(":")[2]
    try:
        found = user_code.module_of(name, definition)
    except TidemarkError:
        raise
    except ModuleNotFoundError as error:
        raise InvalidUsage(f"the definition of {name}, {definition.function} in {file}, needs {error.name}") from None
    except Exception as error:
        what = plain_line(f"{type(error).__name__}: {error}", 300)
        raise InvalidUsage(
            f"the definition of {name}, {definition.function}: importing {file} raises {what}"
        ) from error
    register_pickle_by_value(user_code.package())  # type: ignore[no-untyped-call]
    function = getattr(found, called, None)
    if not callable(function):
        raise InvalidUsage(f"the definition of {name} is {definition.function}: {file} has no function {called!r}")
    return function  # type: ignore[no-any-return]


def answer(name: str, definition: Definition, frames: Mapping[str, DataFrame]) -> DataFrame:
    """What the function makes of the inputs. InvalidUsage where it raises, or answers with anything else."""
    try:
        made = function_of(name, definition)(dict(frames))
    except TidemarkError:
        raise
    except PySparkException as error:
        raise InvalidUsage(f"the definition of {name}, {definition.function}: {message_of(error)}") from None
    except Exception as error:
        what = plain_line(f"{type(error).__name__}: {error}", 300)
        raise InvalidUsage(f"the definition of {name}, {definition.function}, raises {what}") from error
    if not isinstance(made, DataFrame):
        raise InvalidUsage(
            f"the definition of {name}, {definition.function}, answers with {type(made).__name__}; it must be a "
            "DataFrame"
        )
    return made


def learned(views: Views) -> Updates | None:
    """Desired - stored, of the values of `by` that the inputs' changes touch; None where none is touched."""
    computation = views.computation
    by = computation.definition.by
    changed = [input_.name for input_ in computation.inputs if input_.previous != input_.upper]
    values = [views.changes(name).select(*_as_keys(by)) for name in changed]
    distinct = reduce(DataFrame.unionAll, values).distinct()
    touched = touched_of(views, distinct, sum(map(views.rows_changed, changed)))
    if touched.is_empty:
        return None
    frames = {input_.name: _among(views, input_.name, touched, by) for input_ in computation.inputs}
    desired = answer(computation.name, computation.definition, frames)
    return compared_with_own(views, desired, touched, by)


def _among(views: Views, name: str, touched: Touched, by: tuple[str, ...]) -> DataFrame:
    """The rows of an input with touched values."""
    collection = views.computation.input(name).state.collection
    frame = views.rows_of(name, touched.ranges(views, name, collection, named(by)))
    return touched.among(frame, by)


def _as_keys(by: tuple[str, ...]) -> list[Any]:
    return [F.col(f"`{name}`").alias(f"k{at}") for at, name in enumerate(by)]

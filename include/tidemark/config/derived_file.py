"""The file of a derived collection. What it says is known at once; what its columns are, when its inputs are looked at.

file = parse("include/collections/delays.yaml")    # name, inputs, definition: enough for its DAG
file.collection(columns, key)                      # once the definition was analysed over the inputs, at `init`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tidemark.config import readings, windows_checked
from tidemark.config.build import expectations_of
from tidemark.config.declaration import DerivedDeclaration
from tidemark.config.declared_file import DeclaredFile
from tidemark.config.document import Loc
from tidemark.config.nearest import nearest
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType, ValueType
from tidemark.model.derived import Derived
from tidemark.model.window.aggregate import Function
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.quality.expectations import WrongExpectation, check_owner_expectations

_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.INT)
"""Types of a column that says from when or until when a row is there; whole numbers are microseconds."""

_FORMS = ("select", "python", "windows")
"""The fields that are a definition, of which there is one."""


@dataclass(frozen=True)
class DerivedFile(DeclaredFile[DerivedDeclaration]):
    """A file of a derived collection, valid in itself. `collection` makes the Collection it declares."""

    @cached_property
    def origin(self) -> Derived:
        """Its inputs and its definition."""
        return self.declaration.origin

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.origin.inputs

    @property
    def key(self) -> tuple[str, ...] | None:
        """The key it declares, be it by windows; None if that is to be inferred."""
        if (windows := self.origin.definition.windows) is not None:
            return (*windows.by, WINDOW_START, WINDOW_END)
        return None if self.declaration.key is None else tuple(self.declaration.key)

    @property
    def line_of_definition(self) -> Loc:
        """Where the definition is."""
        return next((form,) for form in _FORMS if getattr(self.declaration, form) is not None)

    def line_of_input(self, name: str) -> Loc:
        """Where an input is named."""
        return "from", self.declaration.inputs.index(name)

    def refusal_of_definition(self, message: str) -> InvalidUsage:
        """The error for a definition that does not fit its inputs. What is wrong of windows begins with the field."""
        loc = self.line_of_definition
        said = tuple(message.partition(":")[0].split("."))
        return self.refusal(
            said if self.declaration.windows is not None and said in self.document.lines else loc, message
        )

    def collection(
        self, columns: Sequence[Column], key: Sequence[str] | None = None, hidden: Sequence[Column] = ()
    ) -> Collection:
        """The collection declared, of a definition whose `columns` are known, in order; `key` is the one it shows, for
        a file that declares none. `hidden` are columns of ours that come with the definition's.

        Types the file declares go before those of `columns`. Raises InvalidUsage, in one line, where neither the file
        nor the definition shows a key, and where the file names columns that the definition does not give.
        """
        names = [column.name for column in columns]
        self.check_names(names)
        chosen = self.key or (None if key is None else tuple(key))
        if chosen is None:
            raise self.refusal(self.line_of_definition, _no_key(columns[0]))
        if self.key is None and (refused := _float_in_key(chosen, columns)):
            raise self.refusal(self.line_of_definition, refused)
        self._check_validity({column.name: column.type for column in columns})
        typed = {column.name: column.type for column in columns} | self._texts_of_json
        typed |= {name: of for name, of in self.declaration.types.items() if name in typed}
        value = tuple(Column(name, typed[name]) for name in names if name not in chosen)
        try:
            built = Collection(self.name, tuple(Column(name, typed[name]) for name in chosen), value, self.origin)
        except InvalidUsage as error:
            raise self.refusal(("key",) if "key" in str(error) else ("columns",), str(error)) from None
        for field, of_field in (
            ("timelines", tuple(self.declaration.timelines)),
            ("layout", self.declaration.laid_out),
        ):
            try:
                built = replace(built, **{field: of_field})  # type: ignore[arg-type]
            except InvalidUsage as error:
                raise self.refusal((field,), str(error)) from None
        return self._kept(built, hidden)

    @property
    def _texts_of_json(self) -> dict[str, ValueType]:
        """Columns that a definition gives as texts, and that are JSON."""
        windows = self.origin.definition.windows
        aggregates = () if windows is None else windows.aggregates
        return {one.name: ColumnType.JSON for one in aggregates if one.function is Function.COLLECT}

    def _kept(self, built: Collection, hidden: Sequence[Column]) -> Collection:
        """With what says how it is kept and checked."""
        declared = self.declaration
        if hidden:
            built = replace(built, hidden=tuple(hidden))
        built = replace(
            built,
            quality=expectations_of(declared, self.refusal),
            compact_ahead=declared.compact_ahead,
            live_batches=declared.live_batches,
            max_rows_if_unsorted=declared.chunks.max_rows_if_unsorted,
            retention=declared.retention,
            renames=tuple((old, new) for new, old in declared.renames.items()),
            masked=declared.masked,
            publish=declared.destinations,
        )
        try:
            check_owner_expectations(built)
        except WrongExpectation as error:
            raise self.refusal(error.loc, str(error)) from None
        return built

    def _check_validity(self, types: Mapping[str, ValueType]) -> None:
        """The columns that say how long a row is there hold times: dates, timestamps, or microseconds."""
        validity = self.origin.validity
        for field in ("valid_from", "valid_to") if validity is not None else ():
            name = getattr(validity, field)
            if name is not None and types[name] not in _TIMES:
                raise self.refusal((field,), f"{field} is the column {name}, a {types[name]}; it must be a time")

    def check_names(self, names: Sequence[str]) -> None:
        """Raise InvalidUsage, at its line, for a column that the file names and the definition, of these, has not."""
        declared = self.declaration
        named: list[tuple[Loc, str]] = [(("key", at), name) for at, name in enumerate(declared.key or ())]
        named += [(("timelines", at), name) for at, name in enumerate(declared.timelines)]
        named += [(("columns", name), name) for name in declared.columns]
        bounds = {field: getattr(declared, field) for field in ("valid_from", "valid_to")}
        named += [((field,), name) for field, name in bounds.items() if name is not None]
        for loc, name in named:
            if name not in names:
                raise self.refusal(loc, f"the definition has no column {name}{nearest(name, list(names))}")


def _no_key(first: Column) -> str:
    """What is wrong of a definition that shows no key, and what to do about it; `first` is its first column."""
    why = "no key: the definition does not show which columns say which row is meant"
    if first.type is ColumnType.FLOAT:
        return f"{why}, and {first.name} is a float, {_INSTEAD_OF_FLOAT.format(first.name)}"
    return f"{why}; write key: [{first.name}]"


def _float_in_key(key: Sequence[str], columns: Sequence[Column]) -> str:
    """What is wrong of a key that a definition shows and that has a float; empty for any other."""
    types = {column.name: column.type for column in columns}
    name = next((name for name in key if types[name] is ColumnType.FLOAT), None)
    if name is None:
        return ""
    why = f"no key: the definition shows the key [{', '.join(key)}], and {name} is a float"
    return f"{why}, {_INSTEAD_OF_FLOAT.format(name)}"


_INSTEAD_OF_FLOAT = (
    "which no key holds, as equality of floats identifies nothing; in the select, show and group by "
    "CAST({0} AS decimal(18, 6)) or CAST(round({0} * 100) AS bigint) in its place"
)


def problem(declared: DerivedDeclaration) -> tuple[Loc, str] | None:
    """What is wrong about a file in itself, and where; None if nothing is."""
    if declared.name in declared.inputs:
        return ("from", declared.inputs.index(declared.name)), f"{declared.name} is computed from itself; remove it"
    if declared.valid_for is not None and declared.valid_to is not None:
        return ("valid_for",), "valid_for and valid_to both say until when a row is there; remove one"
    if declared.valid_for is not None and declared.valid_from is None:
        return ("valid_for",), "valid_for counts from valid_from: name the column that says from when a row is there"
    for field in ("valid_for", "max_lag"):
        if getattr(declared, field) == 0:
            return (field,), f"{field} is 0; write how long, or remove it"
    if declared.windows is not None and (other := _beside_windows(declared)):
        return other
    if wrong := windows_checked.problem(declared.windows, declared.aggregates):
        return wrong
    try:
        _ = declared.origin
    except InvalidUsage as error:
        return _definition_loc(declared), str(error)
    if declared.refresh == "incremental" and declared.python and not declared.by:
        return (
            "refresh",
        ), "refresh: incremental, but a python definition without by is computed whole; write by: [...]"
    return _repeated(declared) or _misread(declared) or readings.misplaced(declared)


def _beside_windows(declared: DerivedDeclaration) -> tuple[Loc, str] | None:
    """What windows have no use for."""
    if len(declared.inputs) > 1:
        return ("from", 1), (
            f"windows are over one input, and from names {len(declared.inputs)}; make a derived collection of the rows "
            "that belong together, and the windows over that"
        )
    if declared.by:
        return ("by",), f"by belongs to the windows; write windows: {{by: [{', '.join(declared.by)}]}}"
    if declared.key is not None:
        return ("key",), "the key of windows is their by, window_start and window_end; remove key"
    for field in ("valid_from", "valid_to", "valid_for"):
        if getattr(declared, field) is not None:
            return (field,), f"a window is there from when it closes; remove {field}"
    return None


def _misread(declared: DerivedDeclaration) -> tuple[Loc, str] | None:
    """Where the text of a select and the inputs do not fit; None for a definition in Python, which nobody reads."""
    if declared.select is None:
        return None
    # sqlglot: loaded where a definition is, and for no other file.
    from tidemark.definition.parse import inputs_of

    try:
        read = inputs_of(declared.select)
    except InvalidUsage as error:
        return ("select",), str(error)
    for name in read:
        if name not in declared.inputs:
            return ("select",), f"the select reads {name}, which from does not name{nearest(name, declared.inputs)}"
    for at, name in enumerate(declared.inputs):
        if name not in read:
            return ("from", at), f"from names {name}, which the select does not read; it would be waited for: remove it"
    return None


def _definition_loc(declared: DerivedDeclaration) -> Loc:
    """Where a definition that is none is best mended."""
    forms = [form for form in _FORMS if getattr(declared, form) is not None]
    for field in ("version", "by") if forms and "python" not in forms else ():
        if getattr(declared, field):
            return (field,)
    return (forms[-1],) if forms else ("from",)


def _repeated(declared: DerivedDeclaration) -> tuple[Loc, str] | None:
    for field in ("key", "by", "timelines"):
        names = getattr(declared, field) or []
        for at, name in enumerate(names):
            if name in names[:at]:
                return (field, at), f"column {name} is named twice in {field}"
    return None

"""What an expectation asked and what was found, in words for people: times as times, long texts shortened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidemark.errors import plain_line
from tidemark.model import decimals
from tidemark.model.collection import MASKED, Collection, ColumnType, DecimalType, ValueType
from tidemark.model.instant import format_instant
from tidemark.quality.expectations import OwnerExpectation
from tidemark.quality.rows import shortened
from tidemark.quality.verdict import Verdict

SHOWN_VALUES = 5
LONGEST_VALUE = 200
_ABOUT = ("column", "column_A", "column_B", "column_list", "severity", "description", "notes", "mostly")


@dataclass(frozen=True)
class Wording:
    """One expectation and its verdict on rows of a collection. Values of its masked columns are not shown."""

    owner: OwnerExpectation
    verdict: Verdict
    collection: Collection

    def observed(self) -> str:
        """What there was to see, whether it passed or not."""
        if self.verdict.error or self.verdict.not_asked:
            return self.verdict.not_asked
        if self.verdict.failing is None:
            return self._aggregate()
        if self.verdict.judged is None:
            return f"{self.verdict.failing:,} unexpected"
        return f"{self.verdict.failing:,} of {self.verdict.judged:,} unexpected"

    def failure(self) -> str:
        """What was found where it failed."""
        found = self.verdict
        if found.error:
            return f"could not be evaluated: {found.error}"
        asked = written({name: value for name, value in self.owner.arguments.items() if name not in _ABOUT})
        if found.failing is None:
            return f"observed {self._aggregate()}, not {asked}"
        distinct = list(dict.fromkeys(map(self._value, found.values)))
        shown = ", ".join(distinct[:SHOWN_VALUES]) + (", …" if len(distinct) > SHOWN_VALUES else "")
        not_asked = f", not {asked}" if asked else ""
        return f"{found.failing} {'row holds' if found.failing == 1 else 'rows hold'} {shown}{not_asked}"

    def _aggregate(self) -> str:
        observed = self.verdict.observed
        if isinstance(observed, list | tuple):
            column = self.owner.columns[0] if self.owner.columns else ""
            return "(" + ", ".join(self._of_column(column, value) for value in observed[:LONGEST_VALUE]) + ")"
        if self.owner.observes_values:
            return self._of_column(self.owner.columns[0], observed)
        return plain_text(observed)

    def _value(self, value: Any) -> str:
        pairs = by_column(self.owner, value)
        parts = [(column, self._of_column(column, cell)) for column, cell in pairs]
        if len(parts) == 1:
            return parts[0][1]
        if isinstance(value, Mapping):
            return ", ".join(f"{column} {text}" for column, text in parts)
        return "(" + ", ".join(text for _, text in parts) + ")"

    @cached_property
    def _types(self) -> dict[str, ValueType]:
        return {column.name: column.type for column in self.collection.columns}

    def _of_column(self, column: str, value: Any) -> str:
        plain = python(value)
        if column in self.collection.masked and plain is not None:
            return MASKED
        if plain is None or isinstance(plain, str):
            return plain_text(plain)
        of = self._types.get(column)
        if isinstance(of, DecimalType):
            whole = isinstance(plain, int) or plain == int(plain)
            return decimals.text(decimals.from_units(int(plain), of.scale)) if whole else str(plain / 10**of.scale)
        if self._types.get(column) is ColumnType.TIMESTAMP:
            return format_instant(int(plain))
        if self._types.get(column) is ColumnType.DATE:
            from tidemark.arrow.rows.plain import format_day

            return format_day(int(plain))
        return plain_text(plain)


def by_column(owner: OwnerExpectation, value: Any) -> list[tuple[str, Any]]:
    """A failing value, of one column or of several, as what each column holds."""
    pairs: Iterable[tuple[str, Any]]
    if isinstance(value, Mapping):
        pairs = value.items()
    elif len(owner.columns) == 1:
        pairs = [(owner.columns[0], value)]
    else:
        pairs = zip(owner.columns, value, strict=True)
    return [(column, python(cell)) for column, cell in pairs]


def written(arguments: Mapping[str, Any]) -> str:
    """Arguments as they are in the collection file."""
    return shortened(", ".join(f"{name} {plain_text(value)}" for name, value in arguments.items()))


def plain_text(value: Any) -> str:
    """A value in a sentence, which is one line: line ends of a text as their escapes."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {plain_text(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(plain_text, value)) + ")"
    plain = python(value)
    return "null" if plain is None else plain_line(shortened(str(plain), LONGEST_VALUE))


def python(value: Any) -> Any:
    """A value of a frame as Python has it: its nulls are None, its numbers numbers."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if type(value).__name__ == "NAType":
        return None
    return value.item() if hasattr(value, "item") else value

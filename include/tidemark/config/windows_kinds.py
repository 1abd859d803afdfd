"""The sections of a collection file that say which kind its windows are, made from the kinds (model/window/kinds/).

A field of a kind is a field of its section: the type says what a file may write there (model/window/kinds/fields.py).
A kind with one required field may be written by the value of that alone: `tumbling: 1h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, create_model

from tidemark.config.section import STRICT
from tidemark.config.values import Duration, ZoneName, checked, duration
from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_duration
from tidemark.model.window import kinds
from tidemark.model.window.kinds import fields as written

SomeDuration = Annotated[int | None, checked(duration)]
"""May be left out, and is not empty where it is there."""


def _offset(value: Any) -> int:
    """A duration, which may be negative."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.startswith("-"):
        return -parse_duration(text[1:])
    if isinstance(text, bool | float) or text is None:
        raise InvalidUsage(f"not a duration: {value!r}; write 15m or -15m")
    return parse_duration(text)


_TYPES: Mapping[Any, Any] = {
    written.Length: Duration,
    written.SomeLength: SomeDuration,
    written.Distance: Duration,
    written.Offset: Annotated[int, checked(_offset)],
    written.ZoneName: ZoneName,
    bool: bool,
    int: int,
}
_LENGTHS = (written.Length, written.SomeLength)


@dataclass(frozen=True)
class KindSection:
    """The section of a kind. `attributes` says by the fields that a file writes what they are called in the kind;
    `lengths` are those of them that say how long a window is; `short` is the field that a value alone is short for."""

    of: type[kinds.Kind]
    section: type[BaseModel]
    attributes: Mapping[str, str]
    lengths: tuple[str, ...]
    short: str | None

    @property
    def field(self) -> Any:
        """The type of the field that holds the section."""
        if (short := self.short) is None:
            return self.section | None
        return (
            Annotated[self.section, checked(lambda value: value if isinstance(value, dict) else {short: value})] | None
        )

    def kind(self, section: BaseModel) -> Any:
        """The kind that a section says, a `WindowKind`. InvalidUsage for what is none."""
        return self.of(**{own: getattr(section, name) for name, own in self.attributes.items()})


def section_of(kind: Any) -> KindSection:
    """The section of a kind, which is a class."""
    types = get_type_hints(kind, include_extras=True)
    own = {kind.written_as.get(one.name, one.name): one for one in fields(kind) if one.name != "kind"}
    required = [name for name, one in own.items() if one.default is MISSING]
    declared: dict[str, Any] = {
        name: (_written(types[one.name]), ... if one.default is MISSING else one.default) for name, one in own.items()
    }
    config = STRICT | ConfigDict(defer_build=True)  # it is built within WindowsSection
    return KindSection(
        kind,
        create_model(
            f"{kind.__name__}Section", __config__=config, __doc__=kind.__doc__, __module__=__name__, **declared
        ),
        {name: one.name for name, one in own.items()},
        tuple(name for name, one in own.items() if types[one.name] in _LENGTHS),
        required[0] if len(required) == 1 else None,
    )


def _written(of: Any) -> Any:
    """What a file may write for a field of a type of a kind."""
    if isinstance(of, type) and issubclass(of, StrEnum):
        return Annotated[Literal[tuple(str(one) for one in of)], AfterValidator(of)]
    return _TYPES[of]


KIND_SECTIONS: Mapping[str, KindSection] = {str(kind.kind): section_of(kind) for kind in kinds.KINDS}
"""By the names of kinds, in their order."""

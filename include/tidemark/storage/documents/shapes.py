"""The types of what is stored, as pydantic_core checks and writes them: from the annotations of dataclasses.

pydantic makes the same schemas. To import it, what it looks for among the installed packages, and how it makes them
took a third of the time of a command about metadata. tests/compat/test_shapes.py compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic_core import SchemaSerializer, SchemaValidator

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Schema = dict[str, Any]

_SCALARS = {bool: "bool", int: "int", float: "float", str: "str"}


@dataclass(frozen=True)
class Discriminator:
    """In the annotation of a union of dataclasses: the field by which its members differ."""

    field: str


def schema(kind: Any, *, closed: bool = False) -> Schema:
    """The schema of a type. In a `closed` one, fields that are not declared are refused at any depth.

    Raises TypeError for a type that nothing stored has.
    """
    made = _Schemas(closed)
    return {"type": "definitions", "schema": made.of(kind), "definitions": [*made.definitions.values()]}


@lru_cache(maxsize=64)  # making one takes milliseconds
def validator(kind: Any, *, closed: bool = False) -> SchemaValidator:
    """What makes values of a type of JSON."""
    return SchemaValidator(cast("CoreSchema", schema(kind, closed=closed)))


@lru_cache(maxsize=64)
def serializer(kind: Any) -> SchemaSerializer:
    """What makes JSON of values of a type."""
    return SchemaSerializer(cast("CoreSchema", schema(kind)))


class _Schemas:
    """The schemas of types; each dataclass and each enum has one definition, by a name of its own."""

    def __init__(self, closed: bool) -> None:
        self._config = {"extra_fields_behavior": "forbid"} if closed else {}
        self.definitions: dict[type, Schema] = {}

    def of(self, kind: Any) -> Schema:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(*arguments)
        if origin in (Union, UnionType):
            return self._union(arguments)
        if origin is Literal:
            return {"type": "literal", "expected": [*arguments]}
        if origin is tuple:
            many = {"variadic_item_index": 0} if arguments[-1] is Ellipsis else {}
            return {"type": "tuple", "items_schema": [self.of(each) for each in arguments if each is not ...], **many}
        if kind in _SCALARS:
            return {"type": _SCALARS[kind]}
        if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Enum)):
            return self._defined(kind)
        raise TypeError(f"{kind!r} is no type of anything that is stored")

    def _annotated(self, kind: Any, *marks: Any) -> Schema:
        by = next((mark.field for mark in marks if isinstance(mark, Discriminator)), None)
        if by is None:
            return self.of(kind)
        choices = {value: self.of(each) for each in get_args(kind) for value in get_args(get_type_hints(each)[by])}
        return {"type": "tagged-union", "choices": choices, "discriminator": by}

    def _union(self, kinds: Sequence[Any]) -> Schema:
        choices = [self.of(each) for each in kinds if each is not type(None)]
        several: Schema = choices[0] if len(choices) == 1 else {"type": "union", "choices": choices}
        return {"type": "nullable", "schema": several} if type(None) in kinds else several

    def _defined(self, kind: type) -> Schema:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind not in self.definitions:
            self.definitions[kind] = {}  # it may be within itself
            made = self._enum(kind) if issubclass(kind, Enum) else self._dataclass(kind)
            self.definitions[kind] = {**made, "ref": name}
        return {"type": "definition-ref", "schema_ref": name}

    def _enum(self, kind: type[Enum]) -> Schema:
        sub_type = {"sub_type": "str"} if issubclass(kind, str) else {}
        return {"type": "enum", "cls": kind, "members": [*kind.__members__.values()], **sub_type}

    def _dataclass(self, kind: Any) -> Schema:
        types = get_type_hints(kind, include_extras=True)
        checked = hasattr(kind, "__post_init__")
        return {
            "type": "dataclass",
            "cls": kind,
            "config": self._config,
            "fields": [field.name for field in fields(kind)],
            "post_init": checked,
            "slots": hasattr(kind, "__slots__"),
            "schema": {
                "type": "dataclass-args",
                "dataclass_name": kind.__name__,
                "fields": [self._field(field, types[field.name]) for field in fields(kind)],
                "collect_init_only": checked,
            },
        }

    def _field(self, field: Field[Any], kind: Any) -> Schema:
        made = self.of(kind)
        if field.default is not MISSING:
            made = {"type": "default", "schema": made, "default": field.default}
        elif field.default_factory is not MISSING:
            made = {"type": "default", "schema": made, "default_factory": field.default_factory}
        return {"type": "dataclass-field", "name": field.name, "schema": made, "kw_only": False}

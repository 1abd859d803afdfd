"""Documents: the objects of JSON that Tidemark reads again, each with the number of its format before all else.

The number is read from the bytes, before anything is decoded. What was written in a newer format, or has a field that
its format does not have, is another Tidemark's: it is refused as a whole, and nothing is concluded from the rest of it
(docs/decisions/0031). Objects of format 1 began with no number, and are recognised by that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from tidemark.errors import Corruption, UpgradeRequired, plain_line
from tidemark.storage.documents.codec import encode
from tidemark.storage.documents.upgrade import FORMAT, Kind, as_it_is, upgraded

_LEAD = re.compile(rb'\s*\{\s*"format"\s*:(?:\s*([1-9][0-9]{0,8})\s*([,}]))?')
_NUMBERED_FROM_1 = (Kind.VERSION, Kind.PLAN)
_UNKNOWN = ("unexpected_keyword_argument", "union_tag_invalid")
"""What pydantic calls a field, and a kind of change, that it does not know."""
_OF_SHAPE = (*_UNKNOWN, "missing", "dataclass_type", "tuple_type")
"""What else it says then, of that place or of the other members of a union that it tries."""


def write(value: Any) -> bytes:
    """A dataclass as a document of today's format."""
    body = encode(value)
    return b'{"format":%d' % FORMAT + (b"," if len(body) > 2 else b"") + body[1:]


def read(data: bytes, kind: Kind, shape: Any, *, name: str) -> Any:
    """The value of type `shape` in a document, of whichever format it is; `data` is known to be what was written.

    Raises UpgradeRequired, naming the object, if a newer Tidemark wrote it; Corruption if it is nothing any wrote.
    """
    written_in, body = _numbered(data, kind, name)
    if written_in > FORMAT:
        raise UpgradeRequired(f"{name} has format {written_in}, this Tidemark reads up to {FORMAT}; upgrade Tidemark")
    if not as_it_is(kind, written_in):
        try:
            body = to_json(upgraded(kind, from_json(body), written_in), inf_nan_mode="constants")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Corruption(f"{name} does not decode: {plain_line(str(error))}") from None
    try:
        return _adapter(shape).validate_json(b"[%b]" % body)[0]
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), body, written_in, name) from None


def _numbered(data: bytes, kind: Kind, name: str) -> tuple[int, bytes]:
    """The number of a document's format, and the document without it."""
    lead = _LEAD.match(data)
    if lead and lead[1]:
        return int(lead[1]), b"{" + data[lead.end() if lead[2] == b"," else lead.end() - 1 :]
    if lead or kind in _NUMBERED_FROM_1:
        raise Corruption(f"{name} does not decode: it does not begin with the number of its format")
    return 1, data


@lru_cache(maxsize=16)  # making an adapter takes milliseconds
def _adapter(shape: Any) -> TypeAdapter[Any]:
    """Fields that are not declared are refused at any depth: around a tuple, as a dataclass itself takes no config."""
    return TypeAdapter(tuple[shape], config=ConfigDict(extra="forbid"))


def _refusal(errors: list[ErrorDetails], body: bytes, written_in: int, name: str) -> UpgradeRequired | Corruption:
    """What a document that does not validate means: one that has what its format lacks was not damaged, as its checksum
    holds, but written by a build that is not a release."""
    errors = _of_its_kind(errors)
    only_shape = all(error["type"] in _OF_SHAPE for error in errors)
    unknown = next((error for error in errors if only_shape and error["type"] in _UNKNOWN), None)
    first = unknown or errors[0]
    where, said = plain_line(".".join(str(step) for step in first["loc"][1:]), 200), plain_line(first["msg"])
    if unknown is None:
        return Corruption(f"{name} does not decode: {where}: {said}")
    what = f"the field {where}" if first["type"] == _UNKNOWN[0] else f"{where} of another kind ({said})"
    return UpgradeRequired(
        f"{name}{_writer(body)} has {what}, which format {written_in} as this Tidemark knows it does not have: "
        "a build of another release wrote it; upgrade Tidemark to that one"
    )


def _of_its_kind(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """What is wrong of a value that says its kind, by that kind; what pydantic finds when it tries the other kinds says
    nothing. Of a kind that is not known that is what is wrong."""
    others = {error["loc"][:-1] for error in errors if error["type"] == "literal_error" and error["loc"][-1] == "kind"}
    left = [error for error in errors if not any(error["loc"][: len(other)] == other for other in others)]
    if left or not others:
        return left
    (first, *_) = (error for error in errors if error["type"] == "literal_error")
    unknown = f"{first['input']!r} is none that is known"
    return [{**first, "type": _UNKNOWN[1], "loc": (*first["loc"][:-2], "kind"), "msg": unknown}]


def _writer(body: bytes) -> str:
    """Who wrote a version, where a document says so."""
    document = from_json(body)
    writer = document.get("writer") if isinstance(document, dict) else None
    return f", written by {plain_line(writer, 100)}," if isinstance(writer, str) and writer else ""

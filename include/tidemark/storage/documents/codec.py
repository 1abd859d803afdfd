"""Values as JSON, and back, with every field checked; checksums. What is stored goes through document.py.

JSON numbers here may exceed 2^53 (digests, times): readers must take them as 64-bit integers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Discriminator, TypeAdapter, ValidationError

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef
from tidemark.model.change import Change

_CHECKSUM = b',"sha256":"'


@dataclass(frozen=True)
class VersionRecord:
    """One version of a state: its change, who made it, its predecessor's SHA-256, and sometimes the whole state.

    `id` is the change's own: a writer that lost the reply to its create finds by it whether the version is its own.
    `written_at` is wall-clock microseconds, for people only.
    """

    version: int
    previous: str
    id: str
    written_at: int
    writer: str
    change: Annotated[Change, Discriminator("kind")]
    checkpoint: Arrangement | None = None


@lru_cache(maxsize=64)  # making an adapter takes milliseconds
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def encode(value: Any, kind: Any = None) -> bytes:
    """Compact JSON of a dataclass or of a collection of them (`kind` names the type where it is not a class)."""
    return _adapter(kind or type(value)).dump_json(value)  # type: ignore[arg-type]


def decode(data: bytes, kind: Any, *, name: str) -> Any:
    """The value of `kind` in `data`; Corruption naming the object `name` if it is anything else."""
    try:
        return _adapter(kind).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise Corruption(f"{name} does not decode: {where}: {first['msg']}") from None


def with_checksum(data: bytes) -> bytes:
    """A JSON object with its own checksum as its last member: no later version names the hash of the newest one."""
    return data[:-1] + _CHECKSUM + hashlib.sha256(data[:-1]).hexdigest().encode() + b'"}'


def without_checksum(data: bytes, name: str) -> bytes:
    """A JSON object without its last member, if that is the checksum of what is before it; else Corruption naming the
    object."""
    body, found, digest = data.rpartition(_CHECKSUM)
    if not found or digest != hashlib.sha256(body).hexdigest().encode() + b'"}':
        raise Corruption(f"{name} is not what was written: it does not end with its checksum")
    return body + b"}"


def reference(key: str, data: bytes) -> ObjectRef:
    """What a state records of an object it names."""
    return ObjectRef(key, len(data), hashlib.sha256(data).hexdigest())


def check(ref: ObjectRef, data: bytes) -> bytes:
    """`data` if it is what `ref` recorded; else Corruption with both sizes or both checksums."""
    if len(data) != ref.bytes:
        raise Corruption(f"{ref.key} has {len(data)} bytes, recorded were {ref.bytes}")
    found = hashlib.sha256(data).hexdigest()
    if found != ref.sha256:
        raise Corruption(f"{ref.key} has sha256 {found[:12]}, recorded was {ref.sha256[:12]}")
    return data

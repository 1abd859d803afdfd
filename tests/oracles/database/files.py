"""How messages come into a landing: in files of any length, repeated after a restart, some of them late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracles.database.connectors import Message
from tests.oracles.database.kinds import Kind, Kinds

FORMS = ("bare", "payload", "key and value")


@dataclass(frozen=True)
class File:
    """A file: in which interval it lands, its name, its rows and their messages. Names say nothing of the order."""

    interval: int
    name: str
    rows: tuple[Any, ...]
    messages: tuple[Message, ...]


def cut(entries: Sequence[Sequence[Message]], dice: Random, kinds: Kinds, length: int) -> list[File]:
    """Cut the messages of a log into files for intervals of so many milliseconds."""
    messages = [message for entry in entries for message in entry]
    ends = [sum(len(entry) for entry in entries[:number]) for number in range(1, len(entries) + 1)]
    if Kind.CUT in kinds:
        ends = [*range(1, len(messages)), len(messages)]
    form, begin, last, files = dice.choice(FORMS), 0, 0, list[File]()
    while begin < len(messages):
        end = min((end for end in ends if end >= begin + dice.randrange(1, 10)), default=len(messages))
        sent = messages[begin:end]
        last = max(last, *(message["source"]["ts_ms"] // length for message in sent))
        late = dice.randrange(3) if Kind.LATE in kinds and dice.random() < 0.3 else 0
        rows = tuple(row for message in sent for row in _rows(message, form))
        files.append(File(last + late, f"{dice.randrange(10**6):06}-{len(files)}", rows, tuple(sent)))
        again = Kind.AGAIN in kinds and dice.random() < 0.15
        begin = dice.choice([0, *(each for each in ends if each <= end)]) if again else end
    return files


def _rows(message: Message, form: str) -> list[Any]:
    """A message, and after a delete the tombstone."""
    key = {"id": (message["after"] or message["before"])["id"]}
    bodies = [message, *([None] if message["op"] == "d" else [])]
    if form == "payload":
        return [{"schema": None, "payload": body} for body in bodies]
    if form == "key and value":
        return [{"key": key, "value": body} for body in bodies]
    return bodies

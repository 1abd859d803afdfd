"""Why a batch was cut: the first reason that applied, all others that did, and how fast rows came then."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.nearest import similar


class Reason(StrEnum):
    """Why a batch is cut. Where several hold the first of them, in this order, is the one reported."""

    END_OF_INPUT = "end_of_input"
    """Nothing more belongs to it: its interval is over."""
    MEMORY = "memory"
    """Too much of the memory that there is for it is used."""
    BYTES = "bytes"
    COUNT = "count"
    WATERMARK = "watermark"
    """Event time has passed its end."""
    RATE_CHANGE = "rate_change"
    TIME = "time"
    """It has been open long enough."""
    EXPLICIT = "explicit"
    """Somebody asked for it."""


class Direction(StrEnum):
    """Where a rate went."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True)
class Cut:
    """Why and when a batch was cut: `reason` by precedence, `also` what else applied, in order.

    `at` is when, `opened` when the first of what it holds arrived (µs since the epoch; None: not known), `rate` how
    many rows a second arrived then (None: not known yet), `direction` where that went, of a change of rate.
    """

    reason: Reason
    also: tuple[Reason, ...] = ()
    rate: float | None = None
    direction: Direction | None = None
    opened: int | None = None
    at: int | None = None

    @classmethod
    def of(cls, applicable: Collection[Reason], **details: Any) -> Cut | None:
        """The cut for what applied, in whatever order; None if nothing did."""
        reasons = tuple(each for each in Reason if each in applicable)
        return cls(reasons[0], reasons[1:], **details) if reasons else None

    @classmethod
    def parse(cls, text: str) -> Cut:
        """The cut that a text says: the name of a reason, or what `as_dict` gives, as JSON. InvalidUsage otherwise."""
        if not text.lstrip().startswith("{"):
            return cls(_reason(text))
        try:
            fields = json.loads(text)
            reason, *also = [_reason(name) for name in (fields["reason"], *fields.get("also", ()))]
            direction = fields.get("direction")
            rate, opened, at = (_number(fields, name) for name in ("rate", "opened", "at"))
            bounds = (None if time is None else int(time) for time in (opened, at))
            return cls(reason, tuple(also), rate, direction and Direction(direction), *bounds)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise InvalidUsage(f"not why a batch is cut: {text[:200]!r}: {error}; write explicit") from None

    def as_dict(self) -> dict[str, Any]:
        """JSON values, without what is not known."""
        fields = {
            "reason": str(self.reason),
            "also": [str(each) for each in self.also],
            "rate": None if self.rate is None else round(self.rate, 3),
            "direction": self.direction and str(self.direction),
            "opened": self.opened,
            "at": self.at,
        }
        return {name: value for name, value in fields.items() if value is not None and value != []}

    @property
    def undated(self) -> Cut:
        """The reasons alone."""
        return Cut(self.reason, self.also)

    @property
    def open_for(self) -> int | None:
        """How long the batch was open, in microseconds; None where that is not known."""
        return None if self.opened is None or self.at is None else max(0, self.at - self.opened)

    @property
    def words(self) -> str:
        """In a line: `count, also bytes; 12.5 rows/s, up`."""
        also = f", also {' and '.join(map(_spoken, self.also))}" if self.also else ""
        rate = "" if self.rate is None else f"; {self.rate:,.4g} rows/s"
        return f"{_spoken(self.reason)}{also}{rate}{f', {self.direction}' if self.direction else ''}"


def _number(fields: Mapping[str, Any], name: str) -> float | None:
    value = fields.get(name)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"{name} is {value!r}")


def _reason(text: str) -> Reason:
    try:
        return Reason(text)
    except ValueError:
        meant = similar(text, list(map(str, Reason)))
        hint = f"did you mean {meant!r}?" if meant else "write explicit"
        raise InvalidUsage(f"{text[:200]!r} is no reason to cut a batch; {hint}") from None


def _spoken(reason: Reason) -> str:
    return reason.replace("_", " ")

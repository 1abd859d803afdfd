"""What sections of a collection file have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
"""Fields that are not declared, and values that would have to be converted, are refused."""


class Nothing(BaseModel):
    """A policy without settings: `discard: {}`."""

    model_config = STRICT

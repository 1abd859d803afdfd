"""The fields of cases and steps: which of them state no expectation, and that no other one goes unread."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

INFORMATIVE = {
    *("id", "kind", "origin", "source", "provenance", "note", "notes", "order", "time_base", "unit", "join_note"),
    *("updates_note", "brute_force_match", "watermark_meaning", "kafka_close_loses", "kafka_emit_on_close_starts"),
    *("kafka_emitted_on_close", "kafka_resurrected", "adr"),
}


def check_known(what: dict[str, Any], known: Collection[str]) -> None:
    """Raise, naming it, for a field that is not `known`."""
    for name in what:
        assert name in known or name in INFORMATIVE or name.endswith("_adr"), f"field {name} is not known"

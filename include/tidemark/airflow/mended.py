"""Waiting for a mended file without a worker: the gate defers, and the triggerer looks for a file that has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two looks: each pause is twice the one before, up to five minutes."""
Seen = dict[str, list[Any]]
"""Bytes and change token of files, by their names below the landing."""


class MendedTrigger(BaseTrigger):
    """Fires when one of `files` is not as it was ingested, or is gone, and what is there was the same for two looks, so
    that no file is read half written; or at `until` (seconds since the epoch). Its event says which: `changed`.

    `files` have the bytes and the change token by which they are known to the ledger. `patterns` are the paths of the
    intervals' files. A store that is away is waited for.
    """

    def __init__(self, files: Mapping[str, Sequence[Any]], patterns: Sequence[str], landing: str, until: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.files = {name: list(seen) for name, seen in files.items()}
        self.patterns, self.landing, self.until = list(patterns), landing, until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, also after a restart: the time limit is not begun again."""
        arguments = {name: getattr(self, name) for name in ("files", "patterns", "landing", "until")}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, pause, and look again."""
        pause, before = FIRST_PAUSE, None
        while True:
            # Looking is reading a file system or a bucket: never in the loop, which other triggers share.
            seen = await asyncio.to_thread(self._look)
            changed = seen is not None and any(seen.get(name) != was for name, was in self.files.items())
            if changed and seen == before:
                yield _event(changed=True)
                return
            if time.time() >= self.until:
                yield _event(changed=False)
                return
            pause, before = (FIRST_PAUSE if changed else min(2 * pause, LONGEST_PAUSE)), seen
            await asyncio.sleep(max(0.0, min(pause, self.until - time.time())))

    def _look(self) -> Seen | None:
        """The files that are there now; None where that cannot be seen."""
        from tidemark.storage import landing

        found: Seen = {}
        try:
            for pattern in self.patterns:
                within = self.landing if landing.below(pattern, self.landing) else None
                for file in landing.list_named(pattern, self.landing, within=within):
                    found[file.identity] = [file.bytes, file.token]
        except Exception as error:  # as long as the store is away, or a link leads nowhere
            self.log.info("cannot look: %s", str(error).partition("\n")[0])
            return None
        return found


def _event(**payload: Any) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]

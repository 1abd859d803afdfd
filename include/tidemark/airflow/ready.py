"""Waiting for an interval's files without a worker: the ingest defers, and the triggerer looks for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two looks: each pause is twice the one before, up to five minutes."""


class LandingTrigger(BaseTrigger):
    """Fires when every interval has landed, or at `until`, whichever is first; `since` when the wait began (both in
    seconds since the epoch).

    `patterns` are the paths of the intervals' files by the interval's text, `ready` what shows that each has landed, as
    `landing.is_ready` takes it (one word for all in triggers that 0.6.0 deferred). Its event says `ready` and `since`;
    if it is not, what was `missing` at the last look: an interval, its path, and the error that kept us from looking,
    if any. A store that is away for a while is waited for like a file.
    """

    def __init__(
        self, patterns: Mapping[str, str], ready: Mapping[str, str] | str, landing: str, since: float, until: float
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.patterns, self.landing = dict(patterns), landing
        self.ready = dict.fromkeys(patterns, ready) if isinstance(ready, str) else dict(ready)
        self.since, self.until = since, until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, also after a restart: the time limit is not begun again."""
        arguments = {name: getattr(self, name) for name in ("patterns", "ready", "landing", "since", "until")}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, pause, and look again."""
        pause = FIRST_PAUSE
        while True:
            await asyncio.sleep(max(0.0, min(pause, self.until - time.time())))
            # Looking is reading a file system or a bucket: never in the loop, which other triggers share.
            missing = await asyncio.to_thread(self._look)
            if not missing:
                yield _event(ready=True, since=self.since)
                return
            self.log.info("not ready: %s %s %s", *missing)
            if time.time() >= self.until:
                awaited = self.ready[missing[0]]
                yield _event(ready=False, since=self.since, missing=list(missing), awaited=awaited)
                return
            pause = min(2 * pause, LONGEST_PAUSE)

    def _look(self) -> Sequence[str]:
        """The first interval that has not landed, its path, and what kept us from looking; empty if all have."""
        from tidemark.storage import landing

        for interval, pattern in self.patterns.items():
            within = self.landing if landing.below(pattern, self.landing) else None
            try:
                if not landing.is_ready(pattern, self.ready[interval], within=within):
                    return interval, pattern, ""
            except Exception as error:
                return interval, pattern, str(error).partition("\n")[0]
        return ()


def _event(**payload: Any) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]

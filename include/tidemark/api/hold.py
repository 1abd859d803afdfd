"""A hold that was placed from Python."""

from __future__ import annotations

from tidemark.jobs.job import Job
from tidemark.jobs.steps import retain


class Hold:
    """History that is kept readable, until it is released or expires. A context manager, which releases at its end."""

    def __init__(self, job: Job, name: str, at: int | None, lasts: int | None) -> None:
        self._job = job
        placed = retain.hold(job, name, since=at, for_=lasts)
        self.name = name
        """Whose hold it is."""
        self.at: int = placed["since"]
        """From here on reads stay exact, in microseconds."""
        self.expires: str = placed["expires_text"]
        """When it lets go by itself, as text; `never`."""

    def release(self) -> None:
        """Let go; nothing happens if that was done already."""
        retain.drop_hold(self._job, self.name, missing_ok=True)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        from tidemark.model.instant import format_instant

        return f"<hold {self.name} at {format_instant(self.at)}, expires {self.expires}>"

"""The tree of errors, grouped by what the caller does next.

    TidemarkError
    ├── InvalidUsage     the call or its input is wrong; a retry will not help          exit 1
    │   └── Unvouched    a step touches what no gate has vouched for; run that gate     exit 1
    ├── GateFailed       the data is wrong; a human decides                             exit 1
    ├── Corruption       storage does not hold what was written; stop and look          exit 1
    ├── Contention       lost too many races; nothing happened; run again               exit 75
    │   └── Fenced       a newer attempt of the same step and interval took over        exit 75
    ├── StorageFailed    storage is full, read-only or down; mend it, then run again        exit 75
    ├── NotReady         the input has not landed yet; run again later                  exit 75
    └── CommitUnknown    may have happened; run again, delete nothing                   exit 75

Every error takes one message of one line and survives pickling, because errors cross process boundaries between
executors, drivers and Airflow tasks.
"""

from __future__ import annotations

from typing import ClassVar

REFUSED = 1
"""Exit code: a retry of the same call will not help."""
RETRY_SAFE = 75
"""Exit code (EX_TEMPFAIL): the same call may be made again, and should be."""


class TidemarkError(Exception):
    """Base of all errors Tidemark raises on purpose. `kind` is stable and appears in JSON results."""

    exit_code: ClassVar[int] = REFUSED

    @property
    def kind(self) -> str:
        return type(self).__name__


class InvalidUsage(TidemarkError, ValueError):
    """Your call, your configuration or your input is wrong; the message says what to change."""


class Unvouched(InvalidUsage):
    """A step touches batches (or a frontier) that no certificate of the current suite covers: run the gate named."""

    def __init__(self, message: str, gate: str = "") -> None:
        super().__init__(message)
        self.gate = gate

    def __reduce__(self) -> tuple[type[Unvouched], tuple[str, str]]:
        return type(self), (str(self), self.gate)


class GateFailed(TidemarkError):
    """Data did not pass a gate, or a source file cannot be taken; a human decides."""


class Corruption(TidemarkError):
    """Storage does not hold what was written, or a state breaks an invariant: stop, and run `tidemark verify`.

    `rule` names the invariant (model/invariants.py) where it is one, `params` the values that break it.
    """

    def __init__(self, message: str, rule: str = "", params: tuple[tuple[str, int | str], ...] = ()) -> None:
        super().__init__(message)
        self.rule, self.params = rule, params

    def __reduce__(self) -> tuple[type[Corruption], tuple[object, ...]]:
        return type(self), (str(self), self.rule, self.params)


class Contention(TidemarkError):
    """Lost too many races to commit. Nothing happened; run the same step again."""

    exit_code: ClassVar[int] = RETRY_SAFE


class Fenced(Contention):
    """A newer attempt of the same step and interval has taken over; this one must not commit."""


class StorageFailed(TidemarkError):
    """Storage does not take or answer requests: full, read-only, throttled for long, down. Nothing happened; when it is
    well again, run the same step again."""

    exit_code: ClassVar[int] = RETRY_SAFE


class NotReady(TidemarkError):
    """The interval's files have not landed (its folder or marker is not there). Run the same step again later."""

    exit_code: ClassVar[int] = RETRY_SAFE


class CommitUnknown(TidemarkError):
    """Storage did not say whether a commit happened. Running the step again is safe; delete nothing."""

    exit_code: ClassVar[int] = RETRY_SAFE

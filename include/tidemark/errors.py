"""The tree of errors, grouped by what the caller does next.

    TidemarkError
    ├── InvalidUsage     the call or its input is wrong; a retry will not help          exit 1
    │   ├── Uncertified  a step touches what no gate has certified; run that gate       exit 1
    │   └── MissingExtra a package is not installed that this needs; install it         exit 1
    ├── DataRefused      the data is wrong; a human decides                             exit 1
    │   ├── GateFailed   it did not pass a gate; accept it, mend it or take it out      exit 1
    │   └── FileRefused  a source file cannot be read as declared; mend the file        exit 1
    ├── UpgradeRequired  a newer Tidemark wrote what is stored; upgrade this one        exit 1
    ├── Corruption       storage does not hold what was written; stop and look          exit 1
    ├── Contention       lost too many races; nothing happened; run again               exit 75
    │   └── Fenced       a newer attempt of the same step and interval took over        exit 75
    ├── NotReady         the input has not landed yet; run again later                  exit 75
    ├── Unavailable      storage, a file or memory could not be had for now; run again  exit 75
    │   └── Unwritable   storage is full or read-only; mend it, then run again          exit 75
    └── CommitUnknown    may have happened; run again, delete nothing                   exit 75

Every error takes one message of one line and survives pickling, because errors cross process boundaries between
executors, drivers and Airflow tasks. What a message says of data is bounded, names by `listed` and texts by
`shortened`, and so is any message as a whole: no input can make one that is too long to arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, ClassVar

REFUSED = 1
"""Exit code: a retry of the same call will not help."""
RETRY_SAFE = 75
"""Exit code (EX_TEMPFAIL): the same call may be made again, and should be."""
MAX_MESSAGE = 4_000
"""Characters of an error's message; a longer one loses its middle."""
MAX_LINE = 64 * 1024
"""Characters of the line of JSON that is an app's result; a longer one is none, as it goes into Airflow's database."""
MAX_REASON = 1_000
"""Characters of what is kept of a file that was refused, or of one finding."""
LISTED = 20
"""Names that a message lists, of at most so many characters each:"""
NAME_LENGTH = 80


def shortened(text: str, most: int = MAX_MESSAGE) -> str:
    """The text, as UTF-8 can hold it; of more than `most` characters its start, how many are left out, and its end."""
    if len(text) > most:
        gap = f" … and {len(text) - most:,} more characters … "
        end = max(0, most - len(gap)) // 4
        text = text[: max(0, most - len(gap) - end)] + gap + text[len(text) - end :]
    if text.isascii():
        return text
    escaped = text.encode("utf-8", "backslashreplace").decode()
    return escaped if len(escaped) <= most else shortened(escaped, most)


def listed(names: Iterable[object], most: int = LISTED) -> str:
    """Names for a message: the first ones, and how many more there are."""
    all_names = list(names)
    shown = ", ".join(shortened(str(name), NAME_LENGTH) for name in all_names[:most])
    return shown if len(all_names) <= most else f"{shown} … and {len(all_names) - most:,} more"


def plain_line(text: str, most: int = MAX_REASON) -> str:
    """A text for one line, `shortened`: control characters, line ends among them, as their escapes."""
    text = shortened(text, most)
    if text.isprintable():
        return text
    return shortened("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), most)


class TidemarkError(Exception):
    """Base of all errors Tidemark raises on purpose. `kind` is stable and appears in JSON results."""

    exit_code: ClassVar[int] = REFUSED

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(shortened(one) if isinstance(one, str) else one for one in arguments))

    @property
    def kind(self) -> str:
        return type(self).__name__


class InvalidUsage(TidemarkError, ValueError):
    """Your call, your configuration or your input is wrong; the message says what to change."""


class Uncertified(InvalidUsage):
    """A step touches batches (or a frontier) that no certificate of the current suite covers: run the gate named.

    `intervals` are those that unsealed batches came with.
    """

    def __init__(self, message: str, gate: str = "", intervals: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.gate, self.intervals = gate, intervals

    def __reduce__(self) -> tuple[type[Uncertified], tuple[Any, ...]]:
        return type(self), (str(self), self.gate, self.intervals)


class MissingExtra(InvalidUsage, ImportError):
    """A package is not installed that only some of Tidemark needs; the message says what to install."""


def require(package: str, extra: str | None = None) -> None:
    """Raise MissingExtra unless a package, which comes with an `extra` (None: with none), is there; import nothing."""
    if find_spec(package) is None:
        what = f"'.[{extra}]' (in a checkout of Tidemark)" if extra else package
        raise MissingExtra(f"{package} is not installed: pip install {what}")


class DataRefused(TidemarkError):
    """The data is wrong; a human decides. `details` are JSON values about what is wrong, where there are some."""

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = details or {}

    def __reduce__(self) -> tuple[type[DataRefused], tuple[object, ...]]:
        return type(self), (str(self), self.details)


class FileRefused(DataRefused):
    """Source files cannot be read as the collection declares them: mend them, and run the step again."""


class GateFailed(DataRefused):
    """Data did not pass a gate; `details` are what failed (`GateReport.of_failures`)."""


class Corruption(TidemarkError):
    """Storage does not hold what was written, or a state breaks an invariant: stop, and run `tidemark verify`.

    `rule` names the invariant (model/invariants.py) where it is one, `params` the values that break it.
    """

    def __init__(self, message: str, rule: str = "", params: tuple[tuple[str, int | str], ...] = ()) -> None:
        super().__init__(message)
        self.rule, self.params = rule, params

    def __reduce__(self) -> tuple[type[Corruption], tuple[object, ...]]:
        return type(self), (str(self), self.rule, self.params)


class UpgradeRequired(TidemarkError):
    """What is stored is no damage, but a newer Tidemark's: upgrade the one that raised this, and run the step again."""


class Contention(TidemarkError):
    """Lost too many races to commit. Nothing happened; run the same step again."""

    exit_code: ClassVar[int] = RETRY_SAFE


class Fenced(Contention):
    """A newer attempt of the same step and interval has taken over; this one must not commit."""


class NotReady(TidemarkError):
    """The interval's files have not landed (its folder or marker is not there). Run the same step again later."""

    exit_code: ClassVar[int] = RETRY_SAFE


class Unavailable(TidemarkError):
    """Storage, a source file or memory could not be had for now, or a process of Spark's was killed: no verdict on what
    is in it. Nothing happened; run the same step again."""

    exit_code: ClassVar[int] = RETRY_SAFE

    @property
    def kind(self) -> str:
        return Unavailable.__name__


class Unwritable(Unavailable):
    """Storage is full, over quota or read-only: no writes until somebody acts, and trying again soon is no use."""

    @property
    def kind(self) -> str:
        return Unwritable.__name__


def out_of_memory(what: str, error: MemoryError) -> Unavailable:
    """What memory that runs out (Arrow's error, too) means for whoever was doing `what`."""
    said = (str(error).splitlines() or ["out of memory"])[0]
    return Unavailable(f"{what}: memory ran out ({said}); run the step again, with more memory or fewer tasks at once")


class CommitUnknown(TidemarkError):
    """Storage did not say whether a commit happened. Running the step again is safe; delete nothing."""

    exit_code: ClassVar[int] = RETRY_SAFE

"""What all launchers share: the attempt's token, the app's result line, and what an end means for the task."""

from __future__ import annotations

import contextlib
import json
import secrets
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemark.errors import MAX_LINE, REFUSED, NotReady


class InputNotReady(AirflowException):
    """The app says that what it reads has not landed yet. Retried, unless the operator waits for it."""


class AppRefused(AirflowFailException):
    """The app says that a retry will not help. `kind` is that of its error (errors.py), `details` what else it says."""

    def __init__(self, message: str, kind: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = details or {}


_DECODER = json.JSONDecoder()


def attempt_token(context: Any) -> str:
    """A fresh name for this try of this task: the newest attempt at a step wins, an older one can no longer commit."""
    ti = context["ti"]
    return f"{ti.run_id}/{ti.task_id}/{ti.map_index}/{ti.try_number}/{secrets.token_hex(4)}"


class ResultLine:
    """Watches an app's output for its last line of JSON, which is its result."""

    def __init__(self) -> None:
        self.value: dict[str, Any] | None = None
        self.last = ""

    def see(self, line: str) -> bool:
        """Whether a line is a result."""
        text = line.strip()
        self.last = text or self.last
        start = text.find('{"')
        if start < 0 or len(text) > MAX_LINE:
            return False
        # spark-submit merges the app's two streams with the JVM's: something else may be before or behind.
        with contextlib.suppress(ValueError):
            value, _ = _DECODER.raw_decode(text, start)
            if "step" in value or "error" in value:
                self.value = value
                return True
        return False


def settle(app: str, code: int, signal: int, seen: ResultLine) -> dict[str, Any]:
    """The app's result, or the failure its end stands for.

    AppRefused, which is not retried, only where the app itself says with exit code 1 that a retry will not help.
    AirflowException, which is retried, for everything else: 75, a signal, a crash, a missing result; of these
    InputNotReady where the input has not landed.
    """
    error = (seen.value or {}).get("error")
    if signal:
        raise AirflowException(f"{app} was ended by signal {signal}; it is safe to run it again")
    if code == 0 and seen.value is not None and error is None:
        return seen.value
    if isinstance(error, dict):
        kind = str(error.get("kind", "error"))
        message = f"{app}: {kind}: {error.get('message', '')}"
        if code == REFUSED:
            raise AppRefused(
                message, kind, {name: value for name, value in (seen.value or {}).items() if name != "error"}
            )
        if kind == NotReady.__name__:
            raise InputNotReady(message)
        raise AirflowException(f"{message} (exit {code})")
    if code == 0:
        raise AirflowException(f"{app} ended without its result line; the last line was {seen.last[:200]!r}")
    raise AirflowException(f"{app} ended with exit {code} and no result; the last line was {seen.last[:200]!r}")

"""The few calls of Airflow's REST API that the demo makes, with a token from the login in Airflow's home."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

UNWELL = (500, 503)
"""Answers of an Airflow whose database or API server is being started again: the same call succeeds a moment later."""
PATIENCE_SECONDS = 180.0
OTHER_BACKFILL_SECONDS = 600.0


class AirflowApi:
    """A logged-in client of the local Airflow."""

    def __init__(self, address: str, username: str, password: str, gone: Callable[[], str] = str) -> None:
        """`gone` says why Airflow will not come back; nothing as long as it may."""
        self.address = address
        self._gone = gone
        self._token = ""
        login = {"username": username, "password": password}
        self._token = str(self.call("POST", "/auth/token", login)["access_token"])

    @classmethod
    def local(cls) -> AirflowApi:
        """The Airflow that `make up` started, by the environment of tools/env.sh."""
        from tools.local_airflow import why_down  # reads the environment when it is imported

        passwords = json.loads(Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).read_text())
        return cls(os.environ["AIRFLOW__API__BASE_URL"], "admin", passwords["admin"], why_down)

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, patience: float = PATIENCE_SECONDS
    ) -> Any:
        """The answer to one request, asked again for `patience` seconds while a component of Airflow is started again.

        Raises RuntimeError with Airflow's words, or with those of the component that stayed down.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        deadline = time.monotonic() + patience
        while True:
            request = urllib.request.Request(self.address + path, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                said = f"{error.code} {error.read().decode(errors='replace')[:300]}"
                if error.code not in UNWELL or time.monotonic() > deadline:
                    raise RuntimeError(f"{method} {path}: {said}") from None
            except (OSError, http.client.HTTPException) as error:  # refused, or cut off in the middle
                if (why := self._gone()) or time.monotonic() > deadline:
                    raise RuntimeError(why or f"{method} {path}: {error}") from None
            time.sleep(1)

    def wait_for_dag(self, dag: str, *, seconds: float) -> None:
        """Wait until the DAG processor has found the DAG."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.call("GET", f"/api/v2/dags/{dag}", patience=0)
                return
            except RuntimeError as error:
                if time.monotonic() > deadline:
                    errors = self.call("GET", "/api/v2/importErrors")["import_errors"]
                    why = errors[0]["stack_trace"].strip().splitlines()[-1] if errors else error
                    raise RuntimeError(f"DAG {dag} did not appear within {seconds:.0f} s: {why}") from None
            time.sleep(1)

    def unpause(self, dag: str) -> None:
        self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})

    def trigger(self, dag: str) -> str:
        """Trigger a run by hand; its id."""
        return str(self.call("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None})["dag_run_id"])

    def backfill(self, dag: str, first: str, last: str) -> int:
        """Create a backfill of the days `first` to `last` (both included), run in order; days done are run again.

        A DAG has one backfill at a time: another one that is still running is waited for.
        """
        asked = {
            "dag_id": dag,
            "from_date": f"{first}T00:00:00Z",
            "to_date": f"{last}T00:00:00Z",
            "max_active_runs": 1,
            "reprocess_behavior": "completed",
            "run_backwards": False,
            "dag_run_conf": {},
        }
        deadline = time.monotonic() + OTHER_BACKFILL_SECONDS
        while (running := self._running_backfill(dag)) is not None and not _is_of(running, asked):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"a backfill of {dag} from {running['from_date']} to {running['to_date']} is still running"
                )
            time.sleep(1)
        if running is not None:
            return int(running["id"])
        try:
            return int(self.call("POST", "/api/v2/backfills", asked)["id"])
        except RuntimeError:
            # Asked again after an answer that was lost, it is refused: there is one.
            running = self._running_backfill(dag)
            if running is not None and _is_of(running, asked):
                return int(running["id"])
            raise

    def _running_backfill(self, dag: str) -> dict[str, Any] | None:
        backfills: list[dict[str, Any]] = self.call("GET", f"/api/v2/backfills?dag_id={dag}&limit=100")["backfills"]
        return next((backfill for backfill in backfills if backfill["completed_at"] is None), None)

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The DAG's runs, oldest interval first."""
        found: list[dict[str, Any]] = self.call("GET", f"/api/v2/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return sorted(found, key=lambda run: run["data_interval_start"] or "")

    def run(self, dag: str, run: str) -> dict[str, Any]:
        """A run of the DAG."""
        found: dict[str, Any] = self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}")
        return found

    def clear(self, dag: str, run: str) -> None:
        """What the button *Clear* of a run does: all its tasks again. Returns when the run is no longer ended."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}/clear"
        self.call("POST", path, {"dry_run": False, "only_failed": False})

    def returned(self, dag: str, run: str, task: str) -> Any:
        """What a task of a run returned."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}/taskInstances/{task}/xcomEntries/return_value"
        return self.call("GET", f"{path}?deserialize=true")["value"]

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}/taskInstances"
        found: list[dict[str, Any]] = self.call("GET", path)["task_instances"]
        return found


def _is_of(backfill: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether it is of the days asked for."""
    return all(backfill[name] == asked[name] for name in ("from_date", "to_date"))

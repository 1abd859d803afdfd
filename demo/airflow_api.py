"""The few calls of Airflow's REST API that the demo makes, with a token from the login in Airflow's home."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

BUSY = (409, 500, 503)
"""Answers of an Airflow on SQLite that is busy writing: the same call succeeds a moment later."""


class AirflowApi:
    """A logged-in client of the local Airflow."""

    def __init__(self, address: str, username: str, password: str) -> None:
        self.address = address
        self._token = ""
        login = {"username": username, "password": password}
        self._token = str(self.call("POST", "/auth/token", login)["access_token"])

    @classmethod
    def local(cls) -> AirflowApi:
        """The Airflow that `make up` started, by the environment of tools/env.sh."""
        passwords = json.loads(Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).read_text())
        return cls(os.environ["AIRFLOW__API__BASE_URL"], "admin", passwords["admin"])

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, tries: int = 6) -> Any:
        """The answer to one request; tried again while Airflow is busy. Raises RuntimeError with Airflow's words."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        for left in reversed(range(tries)):
            request = urllib.request.Request(self.address + path, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                said = error.read().decode(errors="replace")
                if error.code not in BUSY or not left:
                    raise RuntimeError(f"{method} {path}: {error.code} {said[:300]}") from None
            except (urllib.error.URLError, TimeoutError) as error:
                if not left:
                    raise RuntimeError(f"{method} {path}: {error}") from None
            time.sleep(2)
        raise AssertionError("unreachable")

    def wait_for_dag(self, dag: str, *, seconds: float) -> None:
        """Wait until the DAG processor has found the DAG."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.call("GET", f"/api/v2/dags/{dag}", tries=1)
                return
            except RuntimeError as error:
                if time.monotonic() > deadline:
                    errors = self.call("GET", "/api/v2/importErrors")["import_errors"]
                    why = errors[0]["stack_trace"].strip().splitlines()[-1] if errors else error
                    raise RuntimeError(f"DAG {dag} did not appear within {seconds:.0f} s: {why}") from None
            time.sleep(1)

    def unpause(self, dag: str) -> None:
        self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})

    def backfill(self, dag: str, first: str, last: str) -> int:
        """Create a backfill of the days `first` to `last` (both included), run in order; days done are run again."""
        for held in self.call("GET", f"/api/v2/backfills?dag_id={dag}&limit=100")["backfills"]:
            if held["completed_at"] is None:
                return int(held["id"])
        asked = {
            "dag_id": dag,
            "from_date": f"{first}T00:00:00Z",
            "to_date": f"{last}T00:00:00Z",
            "max_active_runs": 1,
            "reprocess_behavior": "completed",
            "run_backwards": False,
            "dag_run_conf": {},
        }
        return int(self.call("POST", "/api/v2/backfills", asked)["id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The DAG's runs, oldest interval first."""
        found: list[dict[str, Any]] = self.call("GET", f"/api/v2/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return sorted(found, key=lambda run: run["data_interval_start"] or "")

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}/taskInstances"
        found: list[dict[str, Any]] = self.call("GET", path)["task_instances"]
        return found

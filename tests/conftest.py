"""No test may touch the deployment it was started from: `make test` runs in the environment of the local Airflow."""

from __future__ import annotations

import os

from tests.support.airflow_home import settle

from hypothesis import HealthCheck, settings

# No property holds by the clock: on a machine that is busy with something else one example may take a second.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

DEPLOYMENT = (
    *("TIDEMARK_ROOT", "TIDEMARK_LANDING", "TIDEMARK_LANDINGS", "TIDEMARK_COLLECTIONS", "TIDEMARK_DOCS"),
    *("TIDEMARK_LAUNCHER", "TIDEMARK_SPARK_MASTER"),
)

for name in [*DEPLOYMENT, *(name for name in os.environ if name.startswith(("AIRFLOW__", "AIRFLOW_CONN_")))]:
    os.environ.pop(name, None)

# Before anything imports airflow, which reads its environment once.
settle()

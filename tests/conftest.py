"""No test may touch the deployment it was started from: `make test` runs in the environment of the local Airflow."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

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

# Set before anything imports airflow, which reads it once.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="tidemark-airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)

"""An Airflow of the session's own: a home and a PostgreSQL in one temporary folder, which is gone at its end.

`settle` is called before anything imports airflow, which reads its environment once. The server runs only while
`database` is open: the address alone costs nothing, and keeps Airflow from choosing a database by itself.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.postgres import Postgres

HOME = Path(tempfile.mkdtemp(prefix="tm-"))  # short: a socket's path has 103 bytes
DATABASE = Postgres(HOME / "postgres", HOME / "sockets", durable=False)

atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def settle() -> None:
    """Make this process's environment that of the session's Airflow."""
    os.environ["AIRFLOW_HOME"] = str(HOME)
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = DATABASE.url("airflow")


@contextmanager
def database() -> Iterator[None]:
    """The session's PostgreSQL, running, with Airflow's tables."""
    from airflow.utils.db import initdb

    DATABASE.make()
    with DATABASE.serving(HOME / "postgres.log"):
        DATABASE.create_database("airflow")
        initdb()
        yield

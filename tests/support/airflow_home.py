"""An Airflow of the session's own: a home and a PostgreSQL in its temporary folder.

`settle` is called before anything imports airflow, which reads its environment once. The server runs only while
`database` is open: the address alone costs nothing, and keeps Airflow from choosing a database by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.scratch import AIRFLOW as HOME
from tools.postgres import Postgres

DATABASE = Postgres(HOME / "postgres", HOME / "sockets", durable=False)


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

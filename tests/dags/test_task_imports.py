"""A scheduler with the plugin has imported what its task processes need, and nothing that a fork would suffer from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.dags.support import PROJECT

ASKED = """
import json, runpy, sys, threading
runpy.run_path(sys.argv[1])
before = set(sys.modules)
from tidemark.airflow import collection_dags
dags = sorted(dag.dag_id for dag in collection_dags().values() if dag.tasks)
heavy = {"boto3", "duckdb", "great_expectations", "numpy", "pandas", "pyarrow", "pyspark", "sqlglot"} & {*sys.modules}
added = sorted(name for name in set(sys.modules) - before if name.startswith("tidemark"))
print(json.dumps({"dags": dags, "added": added, "heavy": sorted(heavy), "threads": threading.active_count()}))
"""


def test_a_task_of_a_landed_collection_imports_nothing_more(collections: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(PROJECT / "plugins" / "tidemark_plugin.py")],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "include"), "_AIRFLOW_PARSING_CONTEXT_DAG_ID": "orders"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"dags": ["orders"], "added": [], "heavy": [], "threads": 1}

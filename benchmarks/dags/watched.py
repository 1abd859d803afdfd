"""CPU seconds of task processes, written down by the DAGs of the benchmark."""

import json
import os
import time
from pathlib import Path
from typing import Any


def began(context: Any) -> None:
    """Note the CPU seconds of this process before the operator works: its start, imports and parsing."""
    context["ti"]._cpu_began = time.process_time()


def ended(context: Any, result: Any = None) -> None:
    """Write down the CPU seconds of this process and of its ended children, and what of it was before the work."""
    spent, task = os.times(), context["ti"]
    said = {
        "run": task.run_id,
        "task": task.task_id,
        "before": task._cpu_began,
        "cpu": spent.user + spent.system + spent.children_user + spent.children_system,
    }
    with Path(os.environ["AIRFLOW_HOME"], "task_cpu.jsonl").open("a") as file:
        file.write(json.dumps(said) + "\n")


WATCHED: Any = {"pre_execute": began, "post_execute": ended}

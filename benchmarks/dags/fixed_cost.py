"""The DAGs that benchmarks/fixed_cost.py runs: one for each launcher, and one whose tasks' children do the work. The
floor is beside them (floor.py).

They have no schedule: the benchmark triggers each run, and no other may come between.
"""

from watched import WATCHED

from tidemark.airflow import tidemark_dag
from tidemark.airflow.settings import collections_folder

for file in sorted(collections_folder().glob("*.yaml")):
    by = file.stem.rpartition("_")[2]
    how = {"spark": "auto"} if by == "child" else {"spark": "always", "launcher": by}
    tidemark_dag(file, schedule=None, is_paused_upon_creation=False, default_args={**how, **WATCHED})

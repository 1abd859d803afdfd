"""The DAGs that benchmarks/fixed_cost.py runs: one for each launcher, and the floor, as many tasks that do nothing.

They have no schedule: the benchmark triggers each run, and no other may come between.
"""

from airflow.sdk import DAG, BaseOperator, chain

from tidemark.airflow import tidemark_dag
from tidemark.airflow.settings import collections_folder
from tidemark.jobs.steps.declared import steps_of
from tidemark.jobs.steps.step import When


class Nothing(BaseOperator):
    """Does nothing, but in a task process of its own; an EmptyOperator would not even be started."""

    def execute(self, context: object) -> None:
        pass


for file in sorted(collections_folder().glob("*.yaml")):
    launcher = file.stem.rpartition("_")[2]
    tidemark_dag(file, schedule=None, is_paused_upon_creation=False, default_args={"launcher": launcher})

with DAG("floor", schedule=None, is_paused_upon_creation=False):
    chain(*(Nothing(task_id=f"nothing_{number}") for number in range(2 * len(steps_of(When.EACH_RUN)) + 1)))

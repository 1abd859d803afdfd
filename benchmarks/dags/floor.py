"""The floor of benchmarks/fixed_cost.py: as many tasks as a collection's DAG has, which do nothing, in a DAG file that
imports nothing of Tidemark."""

from airflow.sdk import DAG, BaseOperator, chain
from watched import WATCHED

TASKS = 9


class Nothing(BaseOperator):
    """Does nothing, but in a task process of its own; an EmptyOperator would not even be started."""

    def execute(self, context: object) -> None:
        pass


with DAG("floor", schedule=None, is_paused_upon_creation=False, default_args=WATCHED):
    chain(*(Nothing(task_id=f"nothing_{number}") for number in range(TASKS)))

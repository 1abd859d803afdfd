"""One DAG, `tidemark_maintenance`: daily housekeeping of every collection in include/collections.

A group of tasks for each collection, independent of the others and of the collection's own DAG. For another schedule or
DAGs of your own, take `maintenance_dag(schedule=…)` or `maintenance_group` from `tidemark.airflow`.
"""

from tidemark.airflow import maintenance_dag

globals().update(maintenance_dag())

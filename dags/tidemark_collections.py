"""One DAG for each collection file in include/collections: adding a file adds a DAG.

The documentation of a DAG says what its tasks do, and what to do when a gate fails. A file that is wrong is left out:
tidemark_collection_errors.py shows it as an import error. For DAGs of your own, take `tidemark_dag`, the groups or the
operators from `tidemark.airflow`.
"""

from tidemark.airflow import collection_dags

globals().update(collection_dags())

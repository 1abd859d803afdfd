"""Imports what every task process of a collection's DAG imports: 0.25 CPU seconds of its 0.3.

Airflow's scheduler forks its task processes (LocalExecutor). What it has imported they have, so the plugin imports this
there, once. Nothing here opens a file, starts a thread or imports pyarrow, pyspark or Great Expectations.
"""

from tidemark.airflow import collection_files, factory, small_work, submit_hook
from tidemark.config import collection_file, document
from tidemark.jobs import app
from tidemark.resident import client, server_folder

MODULES = (app, client, collection_file, collection_files, document, factory, server_folder, small_work, submit_hook)

"""Imports what every task process of a collection's DAG imports, and its child (0071): 0.25 CPU seconds of its 0.3.

Airflow's scheduler forks its task processes (LocalExecutor). What it has imported they have, so the plugin imports this
there, once. Nothing here opens a file, starts a thread or imports pyarrow, pyspark or Great Expectations.
"""

from tidemark.airflow import collection_files, factory, small_work, submit_hook
from tidemark.config import collection_file, document
from tidemark.jobs import app
from tidemark.jobs.steps import compact, correct, drain, gate, ingest, init, seal
from tidemark.resident import client, server_folder

MODULES = (
    app,
    client,
    collection_file,
    collection_files,
    compact,
    correct,
    document,
    drain,
    factory,
    gate,
    ingest,
    init,
    seal,
    server_folder,
    small_work,
    submit_hook,
)

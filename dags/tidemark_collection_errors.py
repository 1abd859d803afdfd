"""Wrong collection files, as the import error of this file, which holds no DAG.

Airflow stops scheduling every DAG of a file that has an import error, so tidemark_collections.py must not raise.
"""

from tidemark.airflow import check_collection_files

check_collection_files()

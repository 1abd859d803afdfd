"""Everything that runs another system beside Tidemark.

- `engines`: tables in one process (DuckLake, delta-rs, and Tidemark behind the same methods)
- `spark`: table formats on Spark (Delta, Iceberg, Hudi, Paimon), each in an environment of its own
- `in_process`, `semantics`: the days that `engines` live through, and whether their answers are right
- `timelines`: DuckDB, DuckLake, polars and delta-rs for queries by time

What a peer does for one benchmark only is beside that benchmark's data: corrections/delta_rs.py, corrections/spark.py
and derived/merging.py.
"""

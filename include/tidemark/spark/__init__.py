"""Where it runs: the Spark session, tasks over executors, and reads as DataFrames."""

from tidemark.errors import require

require("pyspark", "spark")

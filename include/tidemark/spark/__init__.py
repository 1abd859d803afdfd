"""Where it runs: the Spark session, tasks over executors, and the laws as DataFrame expressions."""

from tidemark.errors import require

require("pyspark", "spark")

"""How Spark finds the format `tidemark`: it imports each module on its path whose name begins with `pyspark_`."""

from tidemark.datasource.source import TidemarkSource as DefaultSource

__all__ = ["DefaultSource"]

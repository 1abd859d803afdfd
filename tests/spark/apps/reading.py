"""Views and the format on the cluster that spark-submit chose: prints what was counted, as one line of JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import tidemark


def main(root: str) -> None:
    spark = SparkSession.builder.appName("reading").getOrCreate()
    versions = tidemark.register(spark, root)
    counted = spark.sql("SELECT count(*), count(kind), sum(id) FROM events").collect()[0]
    loaded = spark.read.format("tidemark").option("where", "id < 100").load(f"{root}/events")
    some = loaded.groupBy("id").count().count()
    print(json.dumps({"versions": versions, "counted": list(counted), "some": some}))
    spark.stop()


main(sys.argv[1])

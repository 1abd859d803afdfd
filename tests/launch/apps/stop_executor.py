"""Tells the executor inside of a local Spark to stop, as a stranger on the network once could, and fails."""

import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession


def main(argv: Sequence[str]) -> int:
    spark = SparkSession.builder.getOrCreate()
    jvm = spark.sparkContext._jvm
    env = jvm.org.apache.spark.SparkEnv.get()
    endpoint = env.rpcEnv().setupEndpointRef(env.rpcEnv().address(), "LocalSchedulerBackendEndpoint")
    stop = getattr(getattr(jvm.org.apache.spark.scheduler.local, "StopExecutor$"), "MODULE$")
    endpoint.ask(stop, getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any())
    return 75


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Asks Spark's own endpoint over the network for the executor's address, once without the secret and once with it."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession


def reaches(jvm: Any, conf: Any, port: int) -> bool:
    """Whether a peer with these settings is let in: whoever is can tell the executor to stop."""
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    secret_file = getattr(getattr(jvm.org.apache.spark.internal.config, "package$"), "MODULE$").AUTH_SECRET_FILE()
    security = jvm.org.apache.spark.SecurityManager(conf, none, secret_file)
    create = getattr(getattr(jvm.org.apache.spark.rpc, "RpcEnv$"), "MODULE$").create
    peer = create("stranger", "127.0.0.1", 0, conf, security, True)
    try:
        peer.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port), "HeartbeatReceiver")
    except Exception as error:
        print(str(error)[:300], file=sys.stderr)
        return False
    finally:
        peer.shutdown()
    return True


def main(argv: Sequence[str]) -> int:
    spark = SparkSession.builder.getOrCreate()
    jvm, ours = spark.sparkContext._jvm, spark.sparkContext._jsc.sc().getConf()
    port = int(ours.get("spark.driver.port"))
    strange = ours.clone().set("spark.authenticate", "false")
    print(json.dumps({"step": "stranger", "without": reaches(jvm, strange, port), "with": reaches(jvm, ours, port)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

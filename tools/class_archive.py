"""Make build/spark-classes.jsa: the classes that Spark loads, parsed and verified already, for JVMs to map into memory.

A JVM that starts for Spark reads some 12,000 classes out of 300 jars; with this archive it takes most of them as they
are (Java's class data sharing, JEP 350), which spares 40 % of the processor time until a session answers a query.
tools/env.sh names the archive to every JVM that spark-submit starts. Of another class path or with another Java the JVM
leaves it alone and says nothing; half of a file would end it, so the archive gets its name when it is whole.

    python -P tools/class_archive.py build/spark-classes.jsa    # by the Python that has pyspark
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def make(archive: Path) -> None:
    """Start a Spark that does a little of everything, and keep the classes it has loaded. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="spark-classes-") as folder:
        new = Path(folder) / "new.jsa"
        keep = [
            "-XX:-UsePerfData",
            "-Xlog:cds*=off",
            f'"-XX:ArchiveClassesAtExit={new}"',
            f'"-Djava.io.tmpdir={folder}"',
        ]
        env = os.environ | {"SPARK_SUBMIT_OPTS": " ".join(keep), "SPARK_LOCAL_DIRS": folder, "TMPDIR": folder}
        env |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        submit = Path(sys.executable).with_name("spark-submit")
        subprocess.run([submit, "--master", "local[2]", __file__, "--exercise", folder], env=env, check=True)
        new.rename(archive)


def exercise(folder: str) -> None:
    """What most apps have Spark do: reads and writes of Parquet, kernels in Arrow, groups, joins, windows, unions."""
    from tidemark.spark.session import session

    spark = session("the classes of Spark")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        rows = spark.range(100).selectExpr(
            *("id", "id % 7 AS k", "timestamp_micros(id) AS at", "CAST(id AS decimal(20, 2)) AS d", "id / 3 AS f"),
            *("CAST(id AS string) AS s", "date '2024-01-01' AS day", "array(id, id + 1) AS a"),
        )
        rows.write.parquet(f"{folder}/rows")
        read = spark.read.parquet(f"{folder}/rows")
        read.mapInArrow(lambda batches: batches, read.schema).createOrReplaceTempView("rows")
        groups = spark.sql(
            "SELECT k, count(*) AS n, sum(d) AS total, max(s) AS most, avg(f) AS mean FROM rows GROUP BY k"
        )
        groups.join(rows, "k").union(groups.join(rows, "k")).orderBy("id").write.parquet(f"{folder}/joined")
        spark.sql("SELECT *, row_number() OVER (PARTITION BY k ORDER BY at) AS place FROM rows WHERE id > 3").toArrow()
        spark.sql(
            "SELECT one, collect_list(s) FROM rows LATERAL VIEW explode(a) AS one GROUP BY one HAVING count(*) > 1"
        ).collect()
        spark.createDataFrame(read.toArrow()).groupBy("k").applyInArrow(lambda table: table, read.schema).count()
    finally:
        spark.stop()


if __name__ == "__main__":
    if sys.argv[1] == "--exercise":
        exercise(sys.argv[2])
    else:
        make(Path(sys.argv[1]).absolute())

"""Peers on Spark: tables that JVM libraries keep, through one life beside Tidemark's (life.py).

Each runs in an environment of its own below build/peers, with the Spark it has a release for and the jars of
`PEERS`, never in the project's. `make bench PEERS=1` makes them (install.py); what cannot be had is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

PEERS_HOME = Path(__file__).resolve().parents[3] / "build" / "peers"
ENVIRONMENTS = {
    "spark-4.1": ("pyspark==4.1.4", "pyarrow==23.0.1", "numpy==2.4.6", "psutil==7.2.2"),
    "spark-3.5": ("pyspark==3.5.9", "pyarrow==23.0.1", "numpy==2.4.6", "psutil==7.2.2"),
}
"""The Python packages of each environment."""


@dataclass(frozen=True)
class Jar:
    """`group:artifact:version`, and the SHA-256 its file must have."""

    coordinates: str
    sha256: str

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


@dataclass(frozen=True)
class Peer:
    """Where it runs, with what, and the class that drives it."""

    environment: str
    jars: tuple[Jar, ...]
    module: str
    engine: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def python(self) -> Path:
        return PEERS_HOME / self.environment / "bin" / "python"

    @property
    def jar_files(self) -> list[Path]:
        return [PEERS_HOME / "jars" / jar.file_name for jar in self.jars]

    @property
    def installed(self) -> bool:
        return all(path.exists() for path in (self.python, *self.jar_files))


DELTA = (
    Jar("io.delta:delta-spark_4.1_2.13:4.4.0", "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10"),
    Jar("io.delta:delta-storage:4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)
ICEBERG = (
    Jar(
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
        "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
    ),
)
HUDI = (
    Jar(
        "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
        "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
    ),
)
PAIMON = (
    Jar("org.apache.paimon:paimon-spark-3.5:0.9.0", "e9e8a90a630a1440dfd869bb568c8fc916d6de23bc162922cc0c2684ed6fa15b"),
)

PEERS = {
    "Delta": Peer("spark-4.1", DELTA, "delta", "Delta"),
    "Iceberg, merge on read": Peer("spark-4.1", ICEBERG, "iceberg", "Iceberg", (("mode", "merge-on-read"),)),
    "Iceberg, copy on write": Peer("spark-4.1", ICEBERG, "iceberg", "Iceberg", (("mode", "copy-on-write"),)),
    "Hudi": Peer("spark-3.5", HUDI, "hudi", "Hudi"),
    "Paimon": Peer("spark-3.5", PAIMON, "paimon", "Paimon"),
}


OURS = {"Tidemark in one process": "InOneProcess", "Tidemark on Spark, with gates": "OnSpark"}


def opened(name: str, folder: Path) -> Any:
    """A new table of that engine, in this process: which must be one of the engine's environment."""
    if name in OURS:
        return getattr(import_module("benchmarks.peers.spark.ours"), OURS[name])(folder)
    peer = PEERS[name]
    module = import_module(f"benchmarks.peers.spark.{peer.module}")
    return getattr(module, peer.engine)(folder, peer.jar_files, **dict(peer.options))

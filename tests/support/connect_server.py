"""A server of Spark Connect on this machine, of the installed pyspark."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pyspark

PATIENCE_S = 120.0
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass
class ConnectServer:
    """A process with two cores on the loopback interface, whose Python workers run `python`. A context: at its end the
    process has ended, and its workers."""

    folder: Path
    python: Path
    port: int = field(default_factory=lambda: _free_port())
    _process: subprocess.Popen[bytes] | None = None

    @property
    def remote(self) -> str:
        """The address for clients."""
        return f"sc://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        home = Path(pyspark.__file__).parent
        conf = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
        }
        words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER, *words]
        env = {**os.environ, "SPARK_CONNECT_MODE": "0", "SPARK_HOME": str(home), "PYSPARK_PYTHON": str(self.python)}
        for name in ("PYTHONPATH", "PYSPARK_SUBMIT_ARGS", "PYSPARK_DRIVER_PYTHON"):
            env.pop(name, None)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "spark-internal"], cwd=self.folder, env=env, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            alive = self._process.poll() is None and time.monotonic() < deadline
            assert alive, f"no Spark Connect within {PATIENCE_S} s\n{self.log.read_text()[-4000:]}"
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def log(self) -> Path:
        """What the server has said."""
        return self.folder / "connect.log"

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

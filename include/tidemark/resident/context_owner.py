"""The context owner: the one Python process that holds the SparkContext, for the server.

It opens a gateway of its own in the JVM for every run. When the run has ended, however it ended, the gateway is shut
and with it go all Java objects of the run, which the JVM would otherwise keep for ever; and its jobs are cancelled,
later ones too.
"""

from __future__ import annotations

import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tidemark.resident.jvm import gateway_environment
from tidemark.resident.protocol import Channel, Message
from tidemark.resident.sizes import sizes_for

_EXECUTOR_THREAD = "executor-heartbeater"
"""What an executor runs for as long as it takes tasks."""
_FOLLOW_S = 20.0
"""How long jobs of an ended run are looked for again: a statement under way may start another after the first look."""


class ContextOwner:
    def __init__(self, connection: Path) -> None:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        with gateway_environment(*_read_connection(connection)):
            SparkContext._ensure_initialized()
        conf = SparkConf(_jvm=SparkContext._jvm)
        conf.setAll(list(sizes_for(SparkContext._jvm, dict(conf.getAll()), resident=True).items()))
        self._sc = SparkContext(conf=conf)
        self._jvm: Any = self._sc._jvm
        self._jsc: Any = self._sc._jsc.sc()
        self._session = SparkSession(self._sc)
        self._servers: dict[int, Any] = {}
        self._ended: dict[str, float] = {}

    def open(self, number: int) -> Message:
        """A fresh gateway: only who knows its secret can use it, and only until it is closed."""
        server = self._jvm.org.apache.spark.api.python.Py4JServer(self._jsc.conf())
        server.start()
        self._servers[number] = server
        return {"gateway": number, "port": server.getListeningPort(), "secret": server.secret()}

    def close(self, number: int, tags: list[str]) -> None:
        """Nothing of the run goes on: its jobs are cancelled, those it might still start too; its objects go."""
        for tag in tags:
            self._jsc.cancelJobGroupAndFutureJobs(tag)
            self._ended[tag] = time.monotonic() + _FOLLOW_S
        self.follow()
        if server := self._servers.pop(number, None):
            server.shutdown()

    def follow(self) -> bool:
        """Cancel again what ended runs have running; False when there is none left to look after."""
        for tag in list(self._ended):
            self._jsc.cancelJobsWithTag(tag)
            if time.monotonic() > self._ended[tag]:
                del self._ended[tag]
        return bool(self._ended)

    def tidy(self) -> None:
        """With no run under way, drop what runs have cached: the cache is the JVM's, not a session's."""
        self._session._jsparkSession.sharedState().cacheManager().clearCache()
        for rdd in dict(self._sc._jsc.getPersistentRDDs()).values():
            rdd.unpersist(False)

    @property
    def alive(self) -> bool:
        """Whether there is a Spark, and the executor inside of a local one, which can be stopped on its own."""
        if self._jsc.isStopped():
            return False
        if not self._jsc.isLocal():
            return True
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet()
        return any(thread.getName() == _EXECUTOR_THREAD for thread in threads)

    def probe(self) -> bool:
        """Whether a job runs."""
        try:
            return bool(self._sc._jsc.parallelize(self._jvm.java.util.ArrayList(), 1).count() == 0)
        except Exception as error:
            print(f"context owner: Spark ran no job: {str(error)[:500]}", file=sys.stderr, flush=True)
            return False


def keep(channel: Channel, connection: Path) -> None:
    """Serve the server's messages until it closes the channel."""
    context_owner = ContextOwner(connection)
    channel.send({"up": True})
    channel.sock.settimeout(0.25)
    following = False
    while True:
        try:
            got = channel.receive()
        except TimeoutError:
            if following:
                following = context_owner.follow()
            continue
        if got is None:
            return
        message, _ = got
        match message:
            case {"open": int(number)}:
                channel.send(context_owner.open(number))
            case {"close": int(number), "tags": list(tags)}:
                context_owner.close(number, tags)
                following = True
            case {"tidy": _}:
                context_owner.tidy()
            case {"ping": _}:
                channel.send({"pong": context_owner.alive})
            case {"probe": _}:  # in a thread of its own: a job may wait for ever
                threading.Thread(target=lambda: channel.send({"probed": context_owner.probe()}), daemon=True).start()


def _read_connection(path: Path) -> tuple[int, str]:
    """Wait for the file the JVM writes; if the JVM dies instead, the server ends this process."""
    while not path.exists():
        time.sleep(0.02)
    raw = path.read_bytes()
    port, length = struct.unpack_from("!ii", raw)
    return port, raw[8 : 8 + length].decode()

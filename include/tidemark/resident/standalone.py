"""What the master of a standalone Spark cluster says of itself: its workers, their free cores, who holds the others.

The master says it on its page, as JSON. An application does not know the port of that page and asks the master for it,
by a message of Spark's. (There is a message for the state, too, but its answer has lost on the way which cores are
taken, and which workers are dead.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import ProxyHandler, build_opener

SCHEME = "spark://"
ASK_S = 5
"""A master that does not answer for so many seconds is taken for one that cannot."""


class NoAnswer(Exception):
    """No master of the address answers as the leading one."""


@dataclass(frozen=True)
class Worker:
    """A worker that is alive. Memory is in MiB, and is that of executors' heaps."""

    cores: int
    free_cores: int
    memory: int
    free_memory: int


@dataclass(frozen=True)
class Application:
    """An application that is registered: its id, its name, and the cores it holds."""

    id: str
    name: str
    cores: int


@dataclass(frozen=True)
class MasterState:
    """Of the leading master: its workers that are alive, and all applications."""

    workers: tuple[Worker, ...]
    applications: tuple[Application, ...] = ()

    @property
    def cores(self) -> int:
        return sum(worker.cores for worker in self.workers)

    @property
    def free_cores(self) -> int:
        return sum(worker.free_cores for worker in self.workers)


def is_standalone(master: str) -> bool:
    """Whether this is the address of a standalone cluster."""
    return master.startswith(SCHEME)


def ask(jvm: Any, master: str, *, environment: Any = None) -> MasterState:
    """The state of the cluster at `spark://host:port[,host:port…]`.

    `environment` is the RpcEnv of a running Spark; without one another is made, and ended, with the JVM's settings.
    Raises NoAnswer within some ASK_S for each address, also where the master's page cannot be read.
    """
    if environment is None:
        with _environment(jvm) as made:
            return ask(jvm, master, environment=made)
    why = "it has no address"
    for address in master.removeprefix(SCHEME).split(","):
        try:
            host, _, port = address.strip().rpartition(":")
            found = _page(f"http://{host}:{_page_port(jvm, environment, host, int(port))}/json/")
            if found["status"] == "ALIVE":
                return _state(found)
            why = f"{address} is {found['status'].lower()}"
        except Exception as error:
            # Messages between Spark's processes are no interface: whatever fails, the answer is only missing.
            why = _reason(error)
    raise NoAnswer(why)


def _page_port(jvm: Any, environment: Any, host: str, port: int) -> int:
    endpoint = environment.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host, port), "Master")
    request = getattr(getattr(jvm.org.apache.spark.deploy.master, "MasterMessages$BoundPortsRequest$"), "MODULE$")
    answer = jvm.java.lang.Class.forName("org.apache.spark.deploy.master.MasterMessages$BoundPortsResponse")
    return int(endpoint.askSync(request, jvm.scala.reflect.ClassTag.apply(answer)).webUIPort())


def _page(address: str) -> dict[str, Any]:
    """What the page says. No proxy is asked: it is a machine of the cluster's."""
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(address, timeout=ASK_S) as answer:
            found: dict[str, Any] = json.load(answer)
    except (OSError, ValueError) as error:
        raise NoAnswer(f"its page {address} cannot be read: {error}") from None
    return found


def _state(page: dict[str, Any]) -> MasterState:
    workers = tuple(
        Worker(worker["cores"], worker["coresfree"], worker["memory"], worker["memoryfree"])
        for worker in page["workers"]
        if worker["state"] == "ALIVE"
    )
    return MasterState(workers, tuple(Application(app["id"], app["name"], app["cores"]) for app in page["activeapps"]))


@contextmanager
def _environment(jvm: Any) -> Iterator[Any]:
    """An RpcEnv that only asks, for before there is a SparkContext. NoAnswer if this Spark makes none."""
    try:
        conf = jvm.org.apache.spark.SparkConf()
        for name in ("spark.rpc.askTimeout", "spark.rpc.lookupTimeout", "spark.rpc.io.connectionCreationTimeout"):
            conf.set(name, f"{ASK_S}s")
        none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
        secret = getattr(getattr(jvm.org.apache.spark.internal.config, "package$"), "MODULE$").AUTH_SECRET_FILE()
        security = jvm.org.apache.spark.SecurityManager(conf, none, secret)
        made = jvm.org.apache.spark.rpc.RpcEnv.create("tidemark asks", "localhost", 0, conf, security, True)
    except Exception as error:
        raise NoAnswer(_reason(error)) from None
    try:
        yield made
    finally:
        made.shutdown()


def _reason(error: Exception) -> str:
    """The innermost cause, in a line: what wraps it says only that somebody waited."""
    cause = getattr(error, "java_exception", None)
    try:
        while cause is not None and cause.getCause() is not None:
            cause = cause.getCause()
        text = str(error) if cause is None else str(cause.toString())
    except Exception:
        text = repr(error)
    return text.strip().splitlines()[0][:300] if text.strip() else repr(error)

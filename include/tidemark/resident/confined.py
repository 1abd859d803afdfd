"""How a Spark of ours keeps to itself: on the loopback interface, authenticated, its settings in no command line and
its temporary files in one private folder."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from tidemark.resident.scratch import MARK

LOOPBACK = "127.0.0.1"
CLUSTER_PARALLELISM = 2
"""Tasks that work is cut into at least, for a cluster that is not asked how many it runs at once."""
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")
_SECRET = re.compile(r"secret|password|passwd|token|credential|access[._]?key|\.pass$", re.IGNORECASE)


def is_local(master: str) -> bool:
    """Whether all of this Spark runs on this machine."""
    return master.startswith("local")


def local_parallelism(master: str) -> int | None:
    """How many tasks a master `local` or `local[…]` runs at once; None for any other."""
    named = _LOCAL.fullmatch(master)
    if named is None:
        return None
    return (os.cpu_count() or 1) if named[1] == "*" else int(named[1] or 1)


def private_conf(master: str) -> dict[str, str]:
    """Settings that keep other users of the machine and of the network out of a Spark that runs here as a whole.

    A cluster's Spark must talk over the network, and its secret is the cluster's: nothing is set for one. For
    `local[…]` Spark makes a fresh secret itself; the processes of a `local-cluster[…]` must be given one.
    """
    if not is_local(master):
        return {}
    conf = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK, "spark.authenticate": "true"}
    if master.startswith("local-cluster"):
        conf["spark.authenticate.secret"] = secrets.token_hex(32)
    return conf


def ui_conf(master: str) -> dict[str, str]:
    """Spark's own pages: none for a Spark that lives for seconds on this machine. A cluster's are only to look at, and
    at any free port: of those from 4040 on Spark tries sixteen, and fails."""
    if is_local(master):
        return {"spark.ui.enabled": "false"}
    return {"spark.ui.enabled": "true", "spark.ui.killEnabled": "false", "spark.ui.port": "0"}


def private_environment(master: str, scratch: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """What the environment of spark-submit needs beside `environ`, so that it leaves nothing outside of `scratch`."""
    options = [environ.get("SPARK_SUBMIT_OPTS", ""), "-XX:-UsePerfData", f'"-Djava.io.tmpdir={_quoted(scratch)}"']
    added = {
        "SPARK_SUBMIT_OPTS": " ".join(filter(None, options)),
        "SPARK_LAUNCHER_OPTS": f"{environ.get('SPARK_LAUNCHER_OPTS', '')} -XX:-UsePerfData".strip(),
        "TMPDIR": str(scratch),
        MARK: str(scratch),
    }
    if is_local(master):
        added["SPARK_LOCAL_IP"] = LOOPBACK  # where Spark's own pages listen, if they are switched on
    return added


def write_properties(path: Path, conf: Mapping[str, str], *, before: str = "") -> None:
    """A properties file only its user can read; `before` is the text of another one, which `conf` overrides."""
    lines = [before, *(f"{_escaped(key, key=True)}={_escaped(value)}" for key, value in conf.items())]
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def shown(key: str, value: str) -> str:
    """A setting as a message may show it."""
    return f"{key}={'***' if _SECRET.search(key) else value}"


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


def _escaped(text: str, *, key: bool = False) -> str:
    """Text as java.util.Properties reads it back."""
    text = (
        text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    )
    if key:
        return re.sub(r"([ =:#!])", r"\\\1", text)
    return "\\" + text if text.startswith(" ") else text

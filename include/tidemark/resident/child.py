"""One run of one app, in a fork of the fork server: wired to the JVM, then as if started by spark-submit."""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tidemark.resident.confined import shown
from tidemark.resident.jvm import gateway_environment
from tidemark.resident.protocol import Channel, Message, ambient


def live(request: Message, fds: Sequence[int], server: Channel) -> int:
    """Run the request to its exit code. The descriptors become standard output and error; `server` is closed.

    Two things differ from a driver of spark-submit: paths given to Spark must be absolute (the JVM has a working folder
    of its own), and exit handlers do not run (standard output is flushed). Temporary files go into a folder that the
    server removes with the run.
    """
    _take_over(request, fds)
    tag = str(request["run"])
    wired = _wire(int(request["port"]), str(request["secret"]), tag, str(request["app"]))
    server.send({"run": tag, "session": wired._jsparkSession.sessionJobTag()})
    server.close()
    refused = _configure(wired, request.get("conf") or {})
    if refused:
        print(json.dumps({"error": {"kind": "InvalidUsage", "message": refused}}), flush=True)
        return 1
    return _run(str(request["app"]), [str(a) for a in request["argv"]])


def _take_over(request: Message, fds: Sequence[int]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((null, 0), (fds[0], 1), (fds[1], 2)):
        os.dup2(fd, target)
        os.close(fd)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update({str(k): str(v) for k, v in request["env"].items()})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    scratch = Path(str(request["scratch"]))
    scratch.mkdir(mode=0o700)
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None  # what the fork server found
    os.chdir(str(request["cwd"]))
    known = set(sys.path)
    sys.path += [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p not in known]
    if "numpy" in sys.modules:  # `random` reseeds itself after a fork, numpy does not
        sys.modules["numpy"].random.seed()


def _wire(port: int, secret: str, tag: str, app: str) -> Any:
    """A SparkContext and a session of this process's own over the JVM that is there."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    with gateway_environment(port, secret):
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    jvm = gateway.jvm
    jsc = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    sc: Any = SparkContext(gateway=gateway, jsc=jsc, conf=SparkConf(_jvm=jvm, _jconf=jsc.getConf()))
    # `spark.stop()` at the end of an app must not end everybody's Spark, nor clear the JVM's default session.
    SparkContext.stop = SparkSession.stop = lambda _: None  # type: ignore[method-assign,assignment]
    if sc.master.startswith("local"):  # workers see the environment of the run, as they would under spark-submit
        # The temporary folder is everybody's: Spark keeps its workers only for runs with the same environment.
        sc.environment.update({**ambient(os.environ), "TMPDIR": str(Path(os.environ["TMPDIR"]).parent)})
    sc.setJobGroup(tag, f"{Path(app).name} {tag}", interruptOnCancel=True)
    sc.addJobTag(tag)
    module = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")
    root = module.builder().getOrCreate()
    session = SparkSession(sc, root.newSession())
    module.setDefaultSession(root)  # the constructor made ours the default of the whole JVM
    return session


def _configure(session: Any, conf: Mapping[str, str]) -> str:
    """Set what a session can set; the message says what it cannot."""
    for key, value in conf.items():
        if not session.conf.isModifiable(key):
            return (
                f"{shown(key, value)} cannot be set for one task on the resident Spark: put it into"
                " TIDEMARK_RESIDENT_CONF, or use the launcher submit for this task"
            )
        session.conf.set(key, value)
    return ""


def _run(app: str, argv: list[str]) -> int:
    """Run the file as `python app.py args` would, and give its exit code."""
    sys.argv = [app, *argv]
    sys.path.insert(0, str(Path(app).parent))
    code: object = 0
    try:
        runpy.run_path(app, run_name="__main__")
    except SystemExit as leave:
        code = leave.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code & 0xFF if isinstance(code, int) else int(code is not None)

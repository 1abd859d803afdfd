"""What Spark logs of tasks that fail, muted while a definition is computed: where a row raises, one line says all
of it, and Spark's stacks of calls before that line say it less well.

Only where the JVM is this process's own, as its log is there what people look at. A resident one is shared, and has a
file for its log.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext

from tidemark.spark.derive.raised import Raised

LOGGERS = tuple(
    f"org.apache.spark.{name}"
    for name in ("executor.Executor", "scheduler.TaskSetManager", "api.python", "sql.execution", "util.Utils")
)
"""The loggers that report tasks that fail."""
_LINES = "%d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex"


@contextmanager
def muted_task_errors() -> Iterator[None]:
    """Hold back what is logged of tasks that fail. It is logged by Python, for debugging, if Raised is raised: a row
    raised. In all other cases it is written at the end, whatever that is, on stderr."""
    jvm = _own_jvm()
    if jvm is None:
        yield
        return
    loggers = _MutedLoggers(jvm)
    expected = False
    try:
        yield
    except Raised:
        expected = True
        raise
    finally:
        if text := loggers.let_go():
            if expected:
                logging.getLogger(__name__).debug("%s", text)
            else:
                print(text, end="", file=sys.stderr)


def _own_jvm() -> Any:
    """The JVM, if it works for this process alone: started by it, or its parent by spark-submit."""
    gateway: Any = SparkContext._gateway
    own = gateway is not None and (gateway.proc is not None or "PYSPARK_GATEWAY_PORT" in os.environ)
    return gateway.jvm if own else None


def _log4j(jvm: Any, name: str) -> Any:
    """A class of the JVM's logging, asked for by its whole name: of each package on the way to it the JVM would look
    for a class of that name in all jars of Spark."""
    return getattr(jvm, f"org.apache.logging.log4j.{name}")


class _MutedLoggers:
    """Loggers of a JVM whose words are kept. One that somebody configured by its name is left alone."""

    def __init__(self, jvm: Any) -> None:
        self.context = _log4j(jvm, "LogManager").getContext(False)
        self.config = self.context.getConfiguration()
        self.writer = jvm.java.io.StringWriter()
        layout = _log4j(jvm, "core.layout.PatternLayout").newBuilder().withPattern(_LINES).build()
        writes = _log4j(jvm, "core.appender.WriterAppender")
        appender = writes.createAppender(layout, None, self.writer, "muted", False, True)
        appender.start()
        known = self.config.getLoggers()
        self.names = [name for name in LOGGERS if not known.containsKey(name)]
        level, configured = _log4j(jvm, "Level").WARN, _log4j(jvm, "core.config.LoggerConfig")
        for name in self.names:
            logger = configured(name, level, False)
            logger.addAppender(appender, None, None)
            self.config.addLogger(name, logger)
        self.context.updateLoggers()

    def let_go(self) -> str:
        """What was kept; from now on nothing is."""
        for name in self.names:
            self.config.removeLogger(name)
        self.context.updateLoggers()
        return str(self.writer.toString())

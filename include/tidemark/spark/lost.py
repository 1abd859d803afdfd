"""A process of Spark's that ended during the work: killed, by whomever, or by a system that has no memory left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from tidemark.errors import Unavailable

_WORKER = "Python worker exited unexpectedly"
_HEAP = "java.lang.OutOfMemoryError"


@contextmanager
def worker_loss_as_unavailable() -> Iterator[None]:
    """Raise Unavailable where one is: what it had done is nobody's, and the same call may be made again.

    It is to be around all that is asked of Spark in a block, what lets go of it at the end too: there a JVM that is
    gone is missed once more, and reported as a connection that was refused.
    """
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise Unavailable(_said("Spark's JVM", error)) from error
    except (Py4JJavaError, PySparkException) as error:
        text = _text(error)
        if text is None:
            raise Unavailable(_said("Spark's JVM", error)) from error
        if _HEAP in text:
            raise Unavailable(
                "Spark's JVM ran out of memory; give it more (spark.driver.memory, on a cluster "
                "spark.executor.memory, too), and run the step again"
            ) from None
        if _WORKER not in text:
            raise
        raise Unavailable(_said("a Python worker of Spark's", error)) from error


def _text(error: Exception) -> str | None:
    """What an error says; None where the JVM that is to say it is gone."""
    try:
        return str(error)
    except (Py4JNetworkError, ConnectionError):
        return None


def _said(who: str, error: Exception) -> str:
    return f"{who} ended during the work, killed or out of memory ({type(error).__name__})"

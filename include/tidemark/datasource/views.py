"""`register`: Spark knows the format `tidemark`, and collections by name."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage, listed, require

if TYPE_CHECKING:
    from tidemark.api.reads import AsOf
    from tidemark.api.times import Time

_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def register(
    spark: Any,
    root: str | os.PathLike[str] | None = None,
    names: str | Iterable[str] | None = None,
    *,
    prefix: str = "",
    time: Time | None = None,
    event_time: Time | None = None,
) -> dict[str, int]:
    """Make the format `tidemark` known to a Spark session, and the collections below `root` temporary views of their
    names: `spark.sql("SELECT count(*) FROM flights")`. Returns the version of the collection of each view, by its name.

    `names` are those of some collections; without them all get a view, but for those of which nothing is sealed yet: a
    warning names these. A view is called as its collection, behind the `prefix`; one of that name is replaced. It has
    the columns of key and value, and a row with multiplicity m is m rows. It shows what was known at `time` (the
    newest there is), of what had happened by `event_time` (all).

    **Views do not move on**: each stays at the version that was the newest now, however much is written, so that the
    queries of a report agree. Call it again for what is newest then. A version is kept for seven days after it was
    superseded unless the deployment says otherwise: a view of one that is collected fails.

    Executors on other machines, and the server of a Spark Connect session, get this package from here; pyarrow, numpy
    and pydantic they need of their own. With a `root`, this process reads the collections' metadata, so it needs their
    store, too; without one nothing is read.

    Raises InvalidUsage for a root that there is not, for collections that there are not, with those there are, and for
    a named one that cannot be read as of that time; no view is made then. MissingExtra without the extra `spark`."""
    require("pyspark", "spark")
    if not hasattr(spark, "createDataFrame"):
        raise InvalidUsage(f"spark is {spark!r} ({type(spark).__name__}); give a SparkSession")
    if not isinstance(prefix, str) or not _VIEW.fullmatch(f"{prefix}a"):
        raise InvalidUsage(f"prefix is {prefix!r}; it is the beginning of a name, of letters, digits and _")
    if root is None and not (names is None and time is None and event_time is None):
        raise InvalidUsage("root is missing: say below which one the collections are")
    from tidemark.datasource.source import TidemarkSource
    from tidemark.spark.package import ship

    ship(spark)
    spark.dataSource.register(TidemarkSource)
    if root is None:
        return {}
    questions = _asked(root, names, time, event_time)
    frames = {f"{prefix}{name}": _frame(spark, question) for name, question in questions.items()}
    for view, frame in frames.items():
        frame.createOrReplaceTempView(f"`{view}`")
    return {f"{prefix}{name}": question.version for name, question in questions.items()}


def _asked(
    root: str | os.PathLike[str], names: str | Iterable[str] | None, time: Time | None, event_time: Time | None
) -> dict[str, AsOf]:
    """What is asked of each collection."""
    from tidemark.api.opening import collections, open

    if names is None:
        opened = [open(root, name) for name in collections(root)]
        waiting = [one.name for one in opened if not one.state.seal]
        if waiting:
            warnings.warn(f"no view of {listed(waiting)}: nothing is sealed there yet", stacklevel=3)
        opened = [one for one in opened if one.state.seal]
    else:
        opened = [open(root, name) for name in ([names] if isinstance(names, str) else names)]
    return {one.name: one.as_of(time, event_time) for one in opened}


def _frame(spark: Any, question: AsOf) -> Any:
    from tidemark.spark.read import each_row

    question.note()
    return each_row(spark, question.store, question.request)

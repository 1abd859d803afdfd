"""Sessions that take late rows for a while only, by Spark: all updates of a key go in order of their instants through
the kernel that decides which session each counts in (arrow/kernels/windows/late_sessions.py). What is behind it is as
of other sessions.

For changes, all updates of the keys are read that something changed of; of these only the ranges of time are looked at
further in which it did, and the sessions stored there are retracted. D's own sessions are no map here, as elsewhere:
they do not show the rows that came too late, which a row may bring in, or part from what they were late for.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemark.arrow.kernels.windows.gaps import Gaps
from tidemark.arrow.kernels.windows.late_sessions import LAST, LATE, STRETCH, Lasting, judged_updates
from tidemark.definition.recipe import DIFF, LEARNED, SessionPlan
from tidemark.definition.windows.rows import AT, END, START
from tidemark.model.window.kinds import Session
from tidemark.model.window.lateness import NOT_LATE, Lateness
from tidemark.model.window.statistics import UPDATES_LATE
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.here.diff import Reached
from tidemark.spark.derive.queries.null_safe import joined
from tidemark.spark.derive.queries.queried import queried
from tidemark.spark.derive.queries.sessions import sessions_known
from tidemark.spark.derive.queries.through_arrow import through
from tidemark.spark.derive.queries.touched_sessions import FROM, UPTO, within
from tidemark.spark.derive.timeline import floored, learned, micros
from tidemark.spark.derive.touched import Touched, named, own_of, touched_of
from tidemark.spark.derive.under_names import repeated
from tidemark.spark.derive.views import Views

_OF = "_of"
"""The column that says which stretch of a gap's length an instant is in."""


def all_sessions(views: Views, rule: SessionPlan) -> DataFrame:
    """The sessions of all updates of the input."""
    return _sessions(views, rule, _judged(views, rule, views.updates(rule.input)))


def sessions_of(views: Views, rule: SessionPlan, keys: Touched) -> DataFrame:
    """The sessions of the updates that have some values in the columns of `by`: k0, k1, …."""
    return _sessions(views, rule, _judged(views, rule, _updates_of(views, rule, keys)))


def touched_sessions(views: Views, rule: SessionPlan) -> Reached | None:
    """The sessions of stretches of time in which something changed, and those stored there; None where nothing did."""
    changed = queried(views, {rule.input: views.changes(rule.input)}, rule.rows)
    by = [F.col(f"`{name}`").alias(key) for name, key in named(rule.by).items()]
    values = changed.select(*by).distinct() if by else changed.select(F.col(AT).alias("k0")).limit(1)
    touched = touched_of(views, values, views.rows_changed(rule.input))
    if touched.is_empty:
        return None
    judged = _judged(views, rule, _updates_of(views, rule, touched))
    regions = judged.select(*by, F.col(STRETCH).alias(FROM), F.col(LAST).alias(UPTO)).distinct()

    def own_in_regions() -> DataFrame:
        own = own_of(views, touched, rule.by) if rule.by else views.own()
        return within(own, regions, rule, micros(own, WINDOW_START))

    return Reached(_sessions(views, rule, judged), None, own_in_regions)


def late(views: Views) -> Lateness:
    """How much of what is new came too late for all sessions, less what was late before and no longer is."""
    if views.judged is None:
        return NOT_LATE
    found = views.judged.agg(F.sum(LATE)).first()
    rows = int((found and found[0]) or 0)
    return Lateness(rows, 0, rows)


def late_for_each(views: Views, rule: SessionPlan, judged: DataFrame, windows: DataFrame) -> DataFrame:
    """Of each of some sessions for which something came too late how much: the columns of `by`, WINDOW_START,
    WINDOW_END and UPDATES_LATE, by what is `judged` of all updates, with TIME. A row is late for all or for none, and
    is counted by each session that would have taken it and was frozen when it came (tests/oracles/law/missed.py)."""
    kind, bounds = rule.kind, [WINDOW_START, WINDOW_END]
    keys = list(named(rule.by).values())
    by = [F.col(f"`{name}`").alias(key) for name, key in named(rule.by).items()]
    came = judged.where(F.col(LATE) > 0).withColumn(LEARNED, learned(views.computation.input(rule.input).judging))
    together = came.groupBy(*by, AT, LEARNED).agg(F.sum(LATE).alias(LATE))
    spans = [F.expr(micros(windows, name)).alias(span) for name, span in zip(bounds, (START, END), strict=True)]
    stretches = F.explode(F.sequence(floored(f"({START} - {kind.gap}L)", kind.gap), floored(END, kind.gap))).alias(_OF)
    pieces = windows.select(*by, *bounds, *spans).select(*keys, *bounds, START, END, stretches)
    near = joined(together.withColumn(_OF, floored(AT, kind.gap)), pieces, [*keys, _OF])
    refused = near.where(F.expr(f"{END} <= {LEARNED} - {rule.after}L AND {would_take(kind)}"))
    found = refused.groupBy(*keys, *bounds).agg(F.sum(LATE).alias(UPDATES_LATE))
    own = [F.col(key).alias(name) for name, key in named(rule.by).items()]
    return found.select(*own, *bounds, UPDATES_LATE)


def would_take(kind: Session) -> str:
    """Whether a session of START and END would take a row AT an instant, as SQL (model/window/sessions.py)."""
    most = kind.max_length
    alone = kind.gap if most is None else min(kind.gap, most)
    before = f"{AT} + {alone}L {'>=' if kind.exact_gap_merges and alone == kind.gap != most else '>'} {START}"
    at_end = f"{AT} = {END}" if most is None else f"{AT} = {END} AND {END} - {START} < {most}L"
    return f"{before} AND ({AT} < {END}{f' OR ({at_end})' if kind.exact_gap_merges else ''})"


def _updates_of(views: Views, rule: SessionPlan, keys: Touched) -> DataFrame:
    collection = views.computation.input(rule.input).state.collection
    updates = views.updates(rule.input, keys.ranges(views, rule.input, collection, named(rule.by)))
    return keys.among(updates, rule.by) if rule.by else updates


def _judged(views: Views, rule: SessionPlan, updates: DataFrame) -> DataFrame:
    """Updates with the session that each counts in; where only changes are asked for, those of stretches in which there
    are any."""
    given = views.computation.input(rule.input)
    since = {"changed_from": given.previous, "consumed_before": given.consumed}
    views.judged = views.kept(judged_updates_of(views, rule, updates, rule.columns, **since))
    return views.judged


def judged_updates_of(
    views: Views,
    rule: SessionPlan,
    updates: DataFrame,
    shown: Sequence[str],
    *,
    changed_from: int | None = None,
    consumed_before: int | None = None,
) -> DataFrame:
    """Columns of updates of the input, AT, and what is known of each, of all of them or as `Lasting` says."""
    rows = queried(views, {rule.input: updates}, rule.rows)
    given = views.computation.input(rule.input)
    by = [F.col(f"`{name}`") for name in rule.by]
    ordered = (rows.repartition(*by) if by else rows.repartition(1)).sortWithinPartitions(*by, AT)
    assert rule.after is not None  # these are the sessions that are asked for here
    lasting = Lasting(
        Gaps(rule.by, rule.kind.gap, rule.kind.exact_gap_merges, rule.kind.max_length),
        rule.after,
        given.judging.ends,
        tuple(column.name for column in given.state.collection.columns),
        changed_from,
        consumed_before,
    )
    types = {field.name: field for field in ordered.schema.fields}
    numbers = [T.StructField(name, T.LongType()) for name in (START, END, DIFF, LATE, STRETCH, LAST)]
    schema = T.StructType([*(types[name] for name in (*shown, AT)), *numbers])
    return through(ordered, lambda batches: judged_updates(batches, lasting, shown), schema)


def _sessions(views: Views, rule: SessionPlan, judged: DataFrame) -> DataFrame:
    columns = [F.col(f"`{name}`") for name in (*rule.columns, AT, START, END)]
    summed = judged.where(F.col(START).isNotNull()).groupBy(*columns).agg(F.sum(DIFF).alias(DIFF))
    rows = repeated(summed.where(F.col(DIFF) != 0), rule.input, [*rule.by, START, END], DIFF)
    return sessions_known(views, rule, rows)

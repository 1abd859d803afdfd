"""How much of what is new came late for sliding windows that take late rows for a while only, by Spark.

Whether a row was late for some windows, or for all, follows from when it happened and when it came. For how many it was
late takes the windows that are there: those that were frozen when the row came, and so are as they were then. They are
counted by running counts over chunks of starts, so that no row is paired with each window it misses.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from tidemark.definition.recipe import DIFF, LEARNED, SlidingPlan
from tidemark.definition.windows.rows import AT
from tidemark.model.window.lateness import Lateness
from tidemark.model.window.statistics import ROWS_LATE_FOR_ALL, ROWS_LATE_FOR_SOME
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.spark.derive.queries.bands import bands_of
from tidemark.spark.derive.queries.sliding import asked, of_chunks, own_in_chunks
from tidemark.spark.derive.timeline import floored, micros
from tidemark.spark.derive.touched import Touched, touched_of
from tidemark.spark.derive.views import Views

_LEFT, _LAST, _ROWS, _UPTO, _COUNT, _THERE = "_left", "_last", "_rows", "_upto", "_count", "_there"


def late(views: Views, rule: SlidingPlan) -> Lateness:
    """The three numbers of what is new."""
    rows = views.kept(_late_rows(views, rule, views.new(rule.input)))
    refused = F.col(_LAST) >= F.col(AT)
    numbers = [F.sum(F.when(of, F.col(_ROWS))) for of in (refused, ~refused)]
    found = rows.agg(*numbers, F.max(F.when(~refused, F.col(_LAST)))).first()
    assert found is not None
    for_all, for_some, last = int(found[0] or 0), int(found[1] or 0), found[2]
    return Lateness(
        for_all, for_some, for_all + for_some + (_missed(views, rule, rows.where(~refused), last) if for_some else 0)
    )


def late_for_each(views: Views, rule: SlidingPlan, updates: DataFrame, windows: DataFrame) -> DataFrame:
    """Of each of some windows for which updates of the input came too late how many: the columns of `by`, WINDOW_START,
    WINDOW_END, ROWS_LATE_FOR_ALL and ROWS_LATE_FOR_SOME (tests/oracles/law/missed.py). They are counted by running sums
    over chunks of starts, too: windows refused a row from one start to another."""
    width, chunk, bounds = rule.kind.size + 2, f"k{len(rule.by)}", (WINDOW_START, WINDOW_END)
    keys = {name: f"k{at}" for at, name in enumerate(rule.by)}
    rows = _late_rows(views, rule, updates).withColumn(_UPTO, F.least(_LAST, AT))
    of = {ROWS_LATE_FOR_ALL: f"{_LAST} >= {AT}", ROWS_LATE_FOR_SOME: f"{_LAST} < {AT}"}
    rows = rows.withColumns({name: F.expr(f"IF({which}, {_ROWS}, 0L)") for name, which in of.items()})
    reached = F.array_distinct(F.array(floored(_LEFT, width), floored(_UPTO, width)))
    rows = rows.withColumn(chunk, F.explode(reached))
    start, by = micros(windows, WINDOW_START), [F.col(f"`{name}`").alias(key) for name, key in keys.items()]
    both = windows.select(*by, *bounds, floored(start, width).alias(chunk), F.expr(start).alias(_UPTO))
    for at, sign in ((_LEFT, 1), (f"{_UPTO} + 1L", -1)):
        turns = [(F.col(name) * F.lit(sign)).alias(name) for name in of]
        both = both.unionByName(
            rows.select(*keys.values(), chunk, F.expr(at).alias(_UPTO), *turns), allowMissingColumns=True
        )
    upto_here = Window.partitionBy(*keys.values(), chunk).orderBy(_UPTO)
    so_far = upto_here.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    own = [F.col(key).alias(name) for name, key in keys.items()]
    found = both.select(*own, *bounds, *(F.sum(name).over(so_far).alias(name) for name in of))
    return found.where(F.col(WINDOW_START).isNotNull()).na.fill(0, list(of))


def _late_rows(views: Views, rule: SlidingPlan, updates: DataFrame) -> DataFrame:
    """Of updates those that came late for the window that ends with them: k0, k1, …, AT, the starts of that window and
    of the last one that was frozen by then, and how many rows these are."""
    placed = asked(views, rule, updates)
    left = F.col(AT) - F.lit(rule.kind.size)
    if rule.kind.clamp_start_at_zero:
        placed, left = placed.where(F.col(AT) >= 0), F.greatest(left, F.lit(0).cast("long"))
    last = F.col(LEARNED) + F.lit(bands_of(views, rule).first(0) - 1)
    by = [F.col(f"`{name}`").alias(f"k{at}") for at, name in enumerate(rule.by)]
    came = placed.select(*by, AT, left.alias(_LEFT), last.alias(_LAST), F.abs(F.col(DIFF)).alias(_ROWS))
    late = came.where(F.col(_LAST) >= F.col(_LEFT))
    together = [F.col(name) for name in late.columns if name != _ROWS]
    return late.groupBy(*together).agg(F.sum(_ROWS).alias(_ROWS))


def _missed(views: Views, rule: SlidingPlan, rows: DataFrame, last: int) -> int:
    """How often current windows were frozen for rows that are in them, other than those that end with these: starts
    after _LEFT, up to _LAST, which is at most `last`."""
    width, keys, chunk = rule.kind.size + 2, [f"k{at}" for at in range(len(rule.by))], f"k{len(rule.by)}"
    between = [floored(f"({_LEFT} + 1L)", width), floored(_LAST, width)]
    near = rows.where(F.col(_LAST) > F.col(_LEFT)).withColumn(chunk, F.explode(F.array_distinct(F.array(*between))))
    touched = touched_of(views, near.select(*keys, chunk).distinct(), views.rows_changed(rule.input))
    if touched.is_empty:
        return 0
    ends = [(F.col(_LAST), F.col(_ROWS)), (F.col(_LEFT), -F.col(_ROWS))]
    probes = [
        near.select(*keys, chunk, upto.alias(_UPTO), many.alias(_COUNT), F.lit(0).alias(_THERE)) for upto, many in ends
    ]
    both = _there(views, rule, touched, last).unionByName(probes[0]).unionByName(probes[1])
    so_far = Window.partitionBy(*keys, chunk).orderBy(_UPTO).rangeBetween(Window.unboundedPreceding, Window.currentRow)
    found = both.select(F.col(_COUNT), F.sum(_THERE).over(so_far).alias(_THERE)).agg(
        F.sum(F.expr(f"{_COUNT} * {_THERE}"))
    )
    return int((found.first() or [0])[0] or 0)


def _there(views: Views, rule: SlidingPlan, touched: Touched, last: int) -> DataFrame:
    """The windows that start in touched chunks, by k0, k1, …, the last of which is the chunk, and their starts: those
    that stay as they are stored, and of others, if any starts up to `last`, those that the definition computes."""
    width, keys = rule.kind.size + 2, [F.col(f"`{name}`").alias(f"k{at}") for at, name in enumerate(rule.by)]
    bands, frozen_at = bands_of(views, rule), views.computation.input(rule.input).judging.frozen_at
    first = None if frozen_at is None else bands.first(frozen_at)

    def starts_of(frame: DataFrame) -> DataFrame:
        start = micros(frame, WINDOW_START)
        chunk = floored(start, width).alias(f"k{len(rule.by)}")
        return frame.select(
            *keys, chunk, F.expr(start).alias(_UPTO), F.lit(0).cast("long").alias(_COUNT), F.lit(1).alias(_THERE)
        )

    frames = []
    if first is not None:
        own = own_in_chunks(views, rule, touched)
        own = own.groupBy(*(f"`{name}`" for name in (*rule.by, WINDOW_START))).agg(F.sum(DIFF).alias(DIFF))
        frames.append(starts_of(own.where(F.col(DIFF) > 0)).where(F.col(_UPTO) < first))
    if first is None or last >= first:
        found = starts_of(of_chunks(views, rule, touched))
        frames.append(found if first is None else found.where(F.col(_UPTO) >= first))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])

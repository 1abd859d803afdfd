"""Random windows are what plain Spark SQL says of them, to the last bit: built whole, and refreshed from changes.

The oracle (tests/oracles/sql_windows) computes all windows from all rows, by one query each. Where a definition raises
for a row, as ANSI has it, the two agree if both raise; so they do where a sum of whole numbers fits and that of some of
its rows does not, which in Spark depends on their order. `make test` takes one definition of each
kind; in `make test-deep` there are 360, of which 144 are refreshed, too.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.oracles.followed_windows import Followed, Multiset, Oracle, differences, emitted_rows
from tests.oracles.random_windows import HOUR, KINDS, Definitions
from tests.spark.test_derived import Deriving
from tests.support.budget import budget
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.steps.correct import correct
from tidemark.model.collection import Envelope
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Hopping, Session, Sliding, WindowKind
from tidemark.model.window.windows import EVENT_TIME, Windows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
EACH, SEEDS = budget(
    ci=({Envelope.UPDATES: 1}, 1),
    deep=({Envelope.UPDATES: 5, Envelope.APPEND: 3, Envelope.UPSERT: 4}, 5),
)
"""How many definitions of each kind are over the rows of one seed, by the input's envelope; and how many seeds."""
DAYS = [(70, 0), *budget(ci=[(14, 9)], deep=[(14, 9), (3, 3)])]
"""How many rows are new on a day, and of how many something is retracted."""
REFRESHED = 4
"""Definitions of one seed in so many are followed through all days, those of others are built on the first."""


@dataclass
class Tally:
    """How many comparisons came out how, and a text of each that should not have."""

    agreed: int = 0
    raised: int = 0
    refused: int = 0
    signs: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Compared:
    """Windows of the product, and how they compare with the oracle's."""

    name: str
    windows: Windows
    one: Deriving

    def declared(self, tally: Tally) -> bool:
        """Whether they may be declared: an average of decimals with very many digits may not."""
        try:
            self.one.declared()
        except InvalidUsage as error:
            if "more digits than can be exact" not in str(error):
                raise
            tally.refused += 1
            return False
        return True

    def agrees(self, oracle: Oracle, tally: Tally) -> bool:
        """Correct them, and say whether they are to be followed further."""
        columns = self.one.job().log.load().state.collection.columns
        ours, theirs = self._product(oracle), self._oracle(oracle, columns)
        if isinstance(ours, str) or isinstance(theirs, str):
            if isinstance(ours, str) and isinstance(self._oracle(oracle, columns, in_order=True), str):
                tally.raised += 1
            else:
                tally.wrong.append(f"{self.name} {self.windows}\nproduct {_short(ours)}\noracle  {_short(theirs)}")
            return False
        for mine, other, of in zip(ours, theirs, ("all windows", "those that are there"), strict=True):
            if mine != other and without_signs(mine) == without_signs(other):
                tally.signs += 1
            elif mine != other:
                text = differences(mine, other, columns)
                tally.wrong.append(f"{self.name} {self.windows}: {of} differ\n{text}")
                return False
        tally.agreed += 1
        return True

    def _product(self, oracle: Oracle) -> tuple[Multiset, Multiset] | str:
        try:
            correct(self.one.job())
        except TidemarkError as error:
            return str(error)
        return emitted_rows(self.one, self.windows, oracle.close)

    def _oracle(self, oracle: Oracle, columns: Any, *, in_order: bool = False) -> tuple[Multiset, Multiset] | str:
        try:
            return oracle.rows(self.windows, columns, in_order=in_order)
        except (PySparkException, Py4JJavaError) as error:  # the latter while one side of a join is broadcast
            return str(error)


def without_signs(rows: Multiset) -> Multiset:
    """The rows, in whose texts -0.0 is 0.0. SQL takes these for equal. So of all kinds but sliding windows the order in
    which `collect` has those of one instant depends on the order that rows come in."""
    found: Multiset = Counter()
    for row, many in rows.items():
        found[tuple(cell.replace("-0.0", "0.0") if isinstance(cell, str) else cell for cell in row)] += many
    return found


def _short(answer: tuple[Multiset, Multiset] | str) -> str:
    return answer[:300] if isinstance(answer, str) else f"{len(answer[0])} rows"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("envelope", EACH, ids=str)
def test_random_windows_are_what_sql_says(spark: Any, tmp_path: Path, envelope: Envelope, seed: int) -> None:
    followed, tally = Followed.of(tmp_path, spark, seed, envelope), Tally()
    there: list[Compared] = []
    for day, (rows, gone) in enumerate(DAYS if seed % REFRESHED == 0 else DAYS[:1]):
        followed.next_day(rows, gone)
        if day == 0:
            definitions = Definitions(random.Random(f"{envelope} {seed}"), envelope)
            for number in range(EACH[envelope] * len(KINDS)):
                name, windows = f"w{number}", definitions.windows(KINDS[number % len(KINDS)])
                there.append(Compared(name, windows, followed.deriving(name, windows)))
            there = [one for one in there if one.declared(tally)]
        oracle = followed.oracle()
        there = [one for one in there if one.agrees(oracle, tally)]
        oracle.done()
    counts = (tally.agreed, tally.raised, tally.refused, tally.signs)
    print(f"{envelope} {seed}: %d agree, %d raise, %d are refused; %d agree but for signs of 0" % counts)
    assert not tally.wrong, "\n\n".join(tally.wrong)
    assert tally.agreed > tally.raised + tally.refused, tally


def test_rows_that_were_retracted_at_other_times_are_none(spark: Any, tmp_path: Path) -> None:
    """A part is read for the rows near what changed, and holds others that it retracts: those came by a part that has
    none near, which is not read."""
    followed, tally = Followed.of(tmp_path, spark, 8, Envelope.UPDATES), Tally()
    of_s = "substring(s, -1, 1) > s"
    windows = Windows((), EVENT_TIME, Sliding(4 * HOUR, True), (Aggregate("n", Function.COUNT),), where=of_s)
    one = Compared("near", windows, followed.deriving("near", windows))
    for rows, gone in ((70, 0), (14, 9), (3, 3)):
        followed.next_day(rows, gone)
        assert tally.agreed > 0 or one.declared(tally)
        oracle = followed.oracle()
        assert one.agrees(oracle, tally), tally.wrong
        oracle.done()


@pytest.mark.parametrize(
    ("kind", "of"),
    [
        (Sliding(5, clamp_start_at_zero=True), "1 / greatest(ti + 1, 0)"),
        (Hopping(3, 10, 4, sampling=True), "1 / (CASE WHEN pmod(ti - 4, 10) < 3 THEN 1 ELSE 0 END)"),
    ],
    ids=["below 0", "in a gap"],
)
def test_a_value_of_a_row_in_no_window_is_not_computed(spark: Any, tmp_path: Path, kind: WindowKind, of: str) -> None:
    followed, tally = Followed.of(tmp_path, spark, 7, Envelope.UPDATES), Tally()
    windows = Windows(("g",), "ti", kind, (Aggregate("most", Function.MAX, of),), early=True)
    one = Compared("inside", windows, followed.deriving("inside", windows))
    for rows, gone in ((70, 0), (14, 9)):
        followed.next_day(rows, gone)
        assert tally.agreed > 0 or one.declared(tally)
        oracle = followed.oracle()
        assert one.agrees(oracle, tally), tally.wrong
        oracle.done()
    assert any(row["ti"] is not None and row["ti"] < 0 for row in followed.there)


def test_a_wrong_answer_would_be_seen(spark: Any, tmp_path: Path) -> None:
    """Another gap, other rows, a sum of fewer: the rows differ, and it is said in what."""
    followed = Followed.of(tmp_path, spark, 7, Envelope.UPDATES)
    followed.next_day(40, 0)
    exact = (Aggregate("n", Function.COUNT), Aggregate("total", Function.SUM, "y"))
    windows = Windows(("g",), "at", Session(3 * HOUR), exact, early=True)
    one = followed.deriving("visits", windows)
    one.declared()
    correct(one.job())
    oracle, columns = followed.oracle(), one.job().log.load().state.collection.columns
    ours = emitted_rows(one, windows, oracle.close)
    assert ours == oracle.rows(windows, columns)
    added = (exact[0], Aggregate("total", Function.SUM, "y", "m > -5 OR m IS NULL"))
    for other in (replace(windows, kind=Session(2 * HOUR)), replace(windows, where="m <> 5")):
        assert ours != oracle.rows(other, columns)
    wrong = oracle.rows(replace(windows, aggregates=added), columns)
    assert ours != wrong
    assert "'total'" in differences(ours[0], wrong[0], columns)
    oracle.done()

"""Windows of a stretch are those of all rows: whatever is cut, the law says the same of the parts as of the whole."""

from __future__ import annotations

import random

import pytest

from tests.support.kinds import SAMPLES, Sample, name
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import AlignedKind, Hopping, Session, Sliding, Tumbling, Window, WindowKind
from tidemark.model.window.stretches import reach_of, stretch_of, stretches, visits
from tidemark.model.window.windows import Late, Windows

pytestmark = pytest.mark.pure
COUNT = (Aggregate("n", Function.COUNT),)


def rules(kind: WindowKind, unit: int) -> list[Rule]:
    late = [{}, {"late": Late.DISCARD, "grace": 3 * unit}, {"max_lateness": 20 * unit}]
    if isinstance(kind, AlignedKind):
        late.append({"late": Late.NEXT_WINDOW})
    return [Rule.of(Windows((), "t", kind, COUNT, **more)) for more in late]  # type: ignore[arg-type]


def drawn(chance: random.Random, unit: int, count: int) -> list[Happened]:
    """Rows that came in several days, some of which were retracted."""
    rows = []
    for number in range(count):
        at = chance.randrange(-20, 160) * unit
        learned = chance.choice([-(2**62), 40, 80, 120, 200]) * (unit if unit > 1 else 1)
        rows.append(Happened((), (number,), at, max(learned, -(2**62))))
        if chance.random() < 0.2:
            rows.append(rows[-1]._replace(diff=-1, learned=chance.choice([200, 240]) * unit))
    return sorted(rows, key=lambda row: row.at or 0)


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_windows_of_stretches_are_those_of_all_rows(sample: Sample) -> None:
    kind, unit = sample.kind, sample.unit
    chance = random.Random(str(kind))
    for count in (0, 1, 5, 40, 90):
        for rule in rules(kind, unit):
            rows = drawn(chance, unit, count)
            instants = [row.at or 0 for row in rows]
            whole = contents(rule, rows)
            found = {}
            for stretch in stretches(rule, instants, 10):
                windows = contents(rule, rows[stretch.low : stretch.high])
                part = {of: inside for of, inside in windows.items() if stretch.has(of[1])}
                assert not part.keys() & found.keys()
                found |= part
                assert visits(rule, stretch, instants, 3) >= stretch.high - stretch.low
            assert found == whole, rule
            absent = [((), Window(7 * unit, 8 * unit)), ((), Window(1000 * unit, 1009 * unit))]
            for key, window in [*list(whole)[:8], *absent]:
                stretch = stretch_of(rule, instants, window)
                windows = contents(rule, rows[stretch.low : stretch.high])
                assert windows.get((key, window)) == whole.get((key, window)), (rule, window)
                if reach := reach_of(rule, window):
                    near = [row for row in rows if reach[0] <= (row.at or 0) <= reach[1]]
                    assert contents(rule, near).get((key, window)) == whole.get((key, window)), (rule, window)


def test_many_rows_are_cut_into_stretches_that_cost_little() -> None:
    many = list(range(100_000))
    for kind in (Tumbling(50), Sliding(50), Hopping(50, 10)):
        rule = Rule(kind)
        found = stretches(rule, many, 5_000)
        assert max(one.high - one.low for one in found) <= 5_100
        assert sum(visits(rule, one, many, 1) for one in found) <= 500 * len(many)
    assert len(stretches(Rule(Session(1)), list(range(0, 1000, 10)), 5)) == 100

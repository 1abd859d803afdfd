"""Which columns of its inputs a definition needs: no other ones are read."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import recipe

pytestmark = pytest.mark.pure

EVERY = ("carrier", "id", "Delay", "miles", "at", "day", "fare", "tags")
USED = [
    ("SELECT * FROM flights", EVERY, ()),
    ("SELECT f.* EXCEPT (tags, fare) FROM flights f", EVERY[:-2], ()),
    ("SELECT id, upper(carrier) AS c FROM flights WHERE DELAY > 10", ("carrier", "id", "Delay"), ()),
    ("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier", ("carrier",), ()),
    ("SELECT count(*) AS n FROM flights", (), ()),
    ("SELECT x AS id FROM (SELECT miles AS x, day FROM flights)", ("id", "miles", "day"), ()),  # a name of anything
    ("SELECT carrier, sum(fare) FILTER (WHERE day > date'2026-01-01') AS s FROM flights GROUP BY ALL",
     ("carrier", "day", "fare"), ()),
    ("SELECT id, name FROM flights JOIN carriers ON carrier = code", ("carrier", "id"), ("code", "name")),
    ("SELECT id FROM flights JOIN (SELECT code AS carrier FROM carriers) USING (carrier)", ("carrier", "id"),
     ("code",)),
    ("SELECT id, rank() OVER w AS r FROM flights WINDOW w AS (PARTITION BY carrier ORDER BY at)", (*EVERY[:2], "at"),
     ()),
]  # fmt: skip


@pytest.mark.parametrize(("select", "flights", "carriers"), USED)
def test_a_definition_needs_the_columns_it_names(
    select: str, flights: tuple[str, ...], carriers: tuple[str, ...]
) -> None:
    assert recipe(select).used == {"flights": flights, "carriers": carriers}


def test_a_join_asks_its_sides_for_no_more() -> None:
    found = recipe("SELECT f.id, f.carrier, c.name FROM flights f JOIN carriers c ON f.carrier = c.code")
    assert found.by_key is not None
    assert not any(name in found.by_key.select.lower() for name in ("fare", "tags", "rank"))
    crossed = recipe("SELECT f.carrier, count(*) AS n FROM flights f CROSS JOIN carriers GROUP BY f.carrier")
    assert crossed.by_key is None or "`code`" in crossed.by_key.select  # a side that nothing is asked of has rows

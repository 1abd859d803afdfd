"""Which mode a definition has, by which of its columns, and why none cheaper."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import recipe
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Mode, Refresh

BY_ROW = [
    *("SELECT * FROM flights", "SELECT id, upper(carrier) AS c FROM flights WHERE Delay > 10"),
    "SELECT * EXCEPT (tags) FROM flights",
    "WITH late AS (SELECT * FROM flights WHERE Delay > 10) SELECT id, delay * 2 AS twice FROM late WHERE id > 1",
    "SELECT id, tag FROM flights LATERAL VIEW explode(split(tags, ',')) t AS tag",
    "SELECT id, explode(split(tags, ',')) AS tag FROM flights",
    "SELECT id, posexplode(split(tags, ',')) AS (at, tag) FROM flights",
    "SELECT f.id, t.tag FROM flights f, LATERAL explode(split(f.tags, ',')) AS t(tag)",
    "SELECT id FROM flights UNION ALL SELECT id + 1 FROM flights WHERE Delay > 0",
    *("FROM flights |> WHERE Delay > 10 |> SELECT id", "SELECT id FROM flights ORDER BY id"),
]
BY_KEY = [
    ("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier", ("carrier",)),
    ("SELECT carrier, date(at) AS day, count(*) AS n FROM flights GROUP BY ALL", ("carrier", "day")),
    ("SELECT carrier, date(at) AS day, count(*) AS n FROM flights GROUP BY 1, 2", ("carrier", "day")),
    ("SELECT carrier AS c, max(miles) AS m FROM flights GROUP BY carrier HAVING count(*) > 1", ("c",)),
    ("SELECT carrier, max(miles) AS m FROM flights GROUP BY carrier, day", ("carrier",)),
    ("SELECT carrier, sum(id) FILTER (WHERE id > 2) AS s FROM flights GROUP BY ALL", ("carrier",)),
    ("SELECT f.id, c.name FROM flights f JOIN carriers c ON f.id <=> c.rank", ("id",)),
    ("SELECT DISTINCT carrier, day FROM flights", ("carrier", "day")),
    ("SELECT f.id, f.carrier, c.name FROM flights f JOIN carriers c ON f.carrier = c.code", ("carrier",)),
    ("SELECT f.id, c.code, c.name FROM flights f JOIN carriers c ON f.carrier = c.code AND f.id > 1", ("code",)),
    ("SELECT f.id, f.carrier, c.name FROM flights f LEFT JOIN carriers c ON c.code = f.carrier", ("carrier",)),
    ("SELECT f.id, c.code, c.name FROM flights f RIGHT JOIN carriers c ON c.code = f.carrier", ("code",)),
    ("SELECT coalesce(f.carrier, c.code) AS c, f.id FROM flights f FULL JOIN carriers c ON c.code = f.carrier", ("c",)),
    ("SELECT * FROM flights JOIN (SELECT code AS carrier, name FROM carriers) USING (carrier)", ("carrier",)),
    ("SELECT * FROM flights FULL JOIN (SELECT code AS carrier, name FROM carriers) USING (carrier)", ("carrier",)),
    ("SELECT id, carrier FROM flights LEFT SEMI JOIN carriers ON carrier = code", ("carrier",)),
    ("SELECT id, carrier FROM flights LEFT ANTI JOIN carriers ON carrier = code", ("carrier",)),
    ("SELECT id, carrier FROM flights, carriers WHERE carrier = code AND rank > 1", ("carrier",)),
    ("SELECT a.id, b.id AS next, a.carrier FROM flights a JOIN flights b ON a.carrier = b.carrier", ("carrier",)),
    ("SELECT carrier, count(*) AS n FROM flights JOIN carriers ON carrier = code GROUP BY carrier", ("carrier",)),
    ("SELECT id, carrier, rank() OVER (PARTITION BY carrier ORDER BY id) AS r FROM flights", ("carrier",)),
    ("SELECT * FROM flights QUALIFY rank() OVER (PARTITION BY carrier ORDER BY at) = 1", ("carrier",)),
    ("SELECT carrier, count(*) OVER (PARTITION BY carrier) AS n FROM flights QUALIFY n > 1", ("carrier",)),
    ("SELECT carrier FROM flights UNION SELECT code FROM carriers", ("carrier",)),
    ("SELECT carrier FROM flights EXCEPT SELECT code FROM carriers", ("carrier",)),
    (
        "SELECT t, max(1) AS n FROM (SELECT * FROM flights) LATERAL VIEW explode(split(tags, ',')) x AS t GROUP BY t",
        ("t",),
    ),
]
WHOLE = [
    ("SELECT count(*) AS n FROM flights", "an aggregate without GROUP BY needs all rows"),
    ("SELECT count(*) AS n FROM flights GROUP BY carrier", "add one of flights.carrier"),
    ("SELECT carrier, count(*) AS n FROM flights GROUP BY ROLLUP (carrier)", "groups of all rows"),
    ("SELECT f.id, c.name FROM flights f JOIN carriers c ON f.carrier = c.code", "no column of it"),
    ("SELECT f.id, c.name FROM flights f JOIN carriers c ON f.id > c.rank", "compares each row with all others"),
    ("SELECT f.id, c.code FROM flights f LEFT JOIN carriers c ON f.carrier = c.code", "no column of it"),
    ("SELECT f.id, c.name FROM flights f JOIN carriers c ON f.carrier = c.rank", "whose types differ"),
    ("SELECT id, rank() OVER (ORDER BY id) AS r FROM flights", "a window without PARTITION BY"),
    ("SELECT id FROM flights WHERE carrier IN (SELECT code FROM carriers)", "a subquery in an expression"),
]


@pytest.mark.parametrize("select", BY_ROW)
def test_rows_of_one_input_row_each_are_by_row(select: str) -> None:
    found = recipe(select)
    assert (found.mode, found.why) == (Mode.BY_ROW, ())
    assert found.by_row is not None
    assert found.by_row.input == "flights"


@pytest.mark.parametrize(("select", "key_columns"), BY_KEY)
def test_rows_of_one_group_or_join_key_each_are_by_key(select: str, key_columns: tuple[str, ...]) -> None:
    found = recipe(select)
    assert found.mode is Mode.BY_KEY
    assert found.by_key is not None
    assert found.by_key.key_columns == key_columns


@pytest.mark.parametrize("value", ["carrier IS NULL", "carrier > 'A' OR carrier IS NULL", "NOT carrier = 'A'"])
def test_touched_values_are_compared_with_whole_expressions(value: str) -> None:
    by_key = recipe(f"SELECT id, {value} AS v, name FROM flights JOIN carriers ON carrier = code").by_key
    assert by_key is not None
    assert "`k0` IS NOT DISTINCT FROM (" in by_key.select


@pytest.mark.parametrize(("select", "why"), WHOLE)
def test_all_else_is_whole_and_says_why(select: str, why: str) -> None:
    found = recipe(select)
    assert found.mode is Mode.WHOLE
    assert why in found.why[-1]
    with pytest.raises(InvalidUsage, match="refresh: incremental forbids"):
        recipe(select, Refresh.INCREMENTAL)


def test_refresh_whole_is_whole() -> None:
    found = recipe("SELECT * FROM flights", Refresh.WHOLE)
    assert (found.mode, found.why) == (Mode.WHOLE, ("its file says refresh: whole",))


JOINED = {
    "SELECT f.id, c.code, c.name FROM flights f JOIN carriers c ON tags = code WHERE rank > 1": "`f`.`_diff` * `c`",
    "SELECT id, name, code FROM flights, carriers WHERE carrier = code": "`flights`.`_diff` * `carriers`",
}
NOT_JOINED = [
    "SELECT f.id, c.name, c.code FROM flights f LEFT JOIN carriers c ON f.tags = c.code",
    "SELECT f.id, g.id AS other, f.carrier FROM flights f JOIN flights g ON f.id = g.Delay",
    "SELECT carrier, count(*) AS n FROM flights JOIN carriers ON carrier = code GROUP BY carrier",
    "SELECT id, code, rank() OVER (PARTITION BY code ORDER BY id) AS r FROM flights JOIN carriers ON carrier = code",
    "SELECT id, code FROM flights JOIN (SELECT code FROM carriers) ON carrier = code",
    "SELECT id, Delay FROM flights",
]


def test_inner_joins_are_computed_from_what_changed() -> None:
    for select, diff in JOINED.items():
        assert f"{diff}.`_diff` AS `_diff`" in recipe(select).joined
    assert not any(recipe(select).joined for select in NOT_JOINED)

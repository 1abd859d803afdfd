"""What depends on the order of rows is refused, unless the text orders them and no two different rows alike."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import recipe
from tidemark.errors import InvalidUsage

REFUSED = [
    ("SELECT id FROM flights LIMIT 3", "LIMIT (line 1)"),
    ("SELECT id FROM flights ORDER BY at LIMIT 3", "add id to its ORDER BY"),
    ("SELECT name, rank FROM carriers ORDER BY rank LIMIT 2", "add carriers.code to its ORDER BY"),
    ("SELECT DISTINCT carrier, day FROM flights ORDER BY day LIMIT 2", "add carrier to its ORDER BY"),
    (
        "SELECT carrier, n FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY 1) ORDER BY n LIMIT 2",
        "add _0.carrier",
    ),
    ("SELECT id FROM flights UNION ALL SELECT rank FROM carriers LIMIT 3", "add id to its ORDER BY"),
    ("SELECT first(miles) AS f FROM flights GROUP BY carrier", "rows have no order"),
    ("SELECT any_value(miles) AS f FROM flights GROUP BY carrier", "rows have no order"),
    ("SELECT last_value(miles, true) AS f FROM flights GROUP BY carrier", "rows have no order"),
    ("SELECT max_by(id, Delay) AS f FROM flights GROUP BY carrier", "max(named_struct('by', flights.Delay, 'value'"),
    ("SELECT collect_list(id) AS f FROM flights GROUP BY carrier", "sort_array(collect_list(…))"),
    ("SELECT array_agg(id)[0] AS f FROM flights GROUP BY carrier", "sort_array(array_agg(…))"),
    ("SELECT array_sort(collect_set(id), (a, b) -> 0) AS f FROM flights GROUP BY carrier", "sort_array("),
    ("SELECT mode(id) AS f FROM flights GROUP BY carrier", "mode(x, true)"),
    ("SELECT listagg(tags) AS f FROM flights GROUP BY carrier", "WITHIN GROUP (ORDER BY flights.tags)"),
    (
        "SELECT string_agg(tags, ',') WITHIN GROUP (ORDER BY id) AS f FROM flights GROUP BY carrier",
        "ORDER BY flights.tags",
    ),
    ("SELECT id, row_number() OVER (PARTITION BY carrier ORDER BY at) AS n FROM flights", "row_number (line 1)"),
    ("SELECT name, row_number() OVER (ORDER BY rank) AS n FROM carriers", "add carriers.code to its ORDER BY"),
    ("SELECT name, lag(name) OVER w AS n FROM carriers WINDOW w AS (ORDER BY rank)", "add carriers.code"),
    ("SELECT name, first_value(name) OVER (PARTITION BY rank) AS n FROM carriers", "add carriers.code"),
    ("SELECT sum(rank) OVER (ORDER BY name ROWS UNBOUNDED PRECEDING) AS n FROM carriers", "sum over ROWS"),
    ("SELECT id FROM flights QUALIFY row_number() OVER (PARTITION BY carrier ORDER BY at) = 1", "row_number"),
    ("SELECT f.id, row_number() OVER (ORDER BY c.code) AS n FROM flights f JOIN carriers c ON code = carrier", "f.at"),
]
TAKEN = [
    "SELECT name FROM carriers ORDER BY rank, code LIMIT 3",
    "SELECT id FROM flights ORDER BY id LIMIT 3",
    "SELECT name FROM carriers ORDER BY name OFFSET 2",
    "SELECT id AS i, day FROM flights ORDER BY day DESC, i LIMIT 3 OFFSET 1",
    "SELECT id, day FROM flights ORDER BY ALL LIMIT 3",
    "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC, carrier LIMIT 3",
    "SELECT id FROM flights UNION ALL SELECT rank FROM carriers ORDER BY id LIMIT 3",
    "SELECT carrier, sort_array(collect_list(id))[0] AS f FROM flights GROUP BY carrier",
    "SELECT carrier, size(collect_set(id)) AS f FROM flights GROUP BY carrier",
    "SELECT carrier, mode(id, true) AS f FROM flights GROUP BY carrier",
    "SELECT carrier, listagg(tags, ',') WITHIN GROUP (ORDER BY tags) AS f FROM flights GROUP BY carrier",
    "SELECT carrier, percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS f FROM flights GROUP BY carrier",
    "SELECT name, row_number() OVER (ORDER BY rank, code) AS n FROM carriers",
    "SELECT name, row_number() OVER (PARTITION BY code ORDER BY rank) AS n FROM carriers",
    "SELECT name, lag(name) OVER w AS n FROM carriers WINDOW w AS (ORDER BY code)",
    "SELECT c, row_number() OVER (ORDER BY n, c) AS r FROM (SELECT carrier AS c, max(id) AS n FROM flights GROUP BY 1)",
    "SELECT carrier, count(*) AS n, row_number() OVER (ORDER BY count(*), carrier) AS r FROM flights GROUP BY carrier",
    "SELECT id, rank() OVER (ORDER BY at) AS n, sum(Delay) OVER (ORDER BY at) AS s FROM flights",
    "SELECT id, sum(Delay) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM flights",
    "SELECT id FROM flights QUALIFY rank() OVER (PARTITION BY carrier ORDER BY at) = 1",
]


@pytest.mark.parametrize(("select", "message"), REFUSED)
def test_what_depends_on_the_order_of_rows_is_refused(select: str, message: str) -> None:
    with pytest.raises(InvalidUsage) as refusal:
        recipe(select)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("select", TAKEN)
def test_a_total_order_is_taken(select: str) -> None:
    recipe(select)

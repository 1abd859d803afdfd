"""What a definition gives is the same in every mode, bit by bit: for changes of its inputs, the rows that it has then
less those that it had are what is computed from the changes by row, from the keys they touch, and from sums that grow.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.pure.definition.inputs import CARRIERS, FLIGHTS, INPUTS
from tests.support.budget import budget
from tidemark.definition.analysed import analysed
from tidemark.definition.exact_sum import EXACT_SUM, exact_sum
from tidemark.definition.functions import AGGREGATES, GENERATORS, why_refused
from tidemark.definition.recipe import CURRENT, DELTA, DIFF, EVENT_TIME, TIME, TOUCHED, ByKey, ByRow, changes_of
from tidemark.definition.resolve import sql_type
from tidemark.model.derived import Mode

Row = tuple[Any, ...]
Rows = Counter[Row]
"""Rows with their multiplicities."""

BY_ROW = [
    "SELECT * FROM flights",
    """SELECT id, upper(carrier) AS c, Delay / 7 AS d, fare * 1.5 AS f, date(at) AS on, 'it''s' AS t FROM flights
       WHERE Delay > 0 OR miles > 1""",
    "SELECT id, tag FROM flights LATERAL VIEW posexplode(split(tags, ',')) t AS place, tag WHERE place < 2",
    """SELECT id, explode(split(tags, ',')) AS tag FROM flights
       UNION ALL SELECT id + 1, carrier FROM flights WHERE id > 3""",
]
SUMS = [
    "SELECT carrier, day, count(*) AS n, sum(Delay) AS s, avg(Delay) AS a FROM flights GROUP BY ALL",
    """SELECT carrier, avg(fare) AS a, sum(fare) AS s, sum(fare) / count(*) AS r, count(Delay, miles) AS c
       FROM flights GROUP BY 1""",
    """SELECT upper(carrier) AS c, avg(fare) FILTER (WHERE Delay > 0) AS a, count_if(Delay > 0) AS late,
       sum(Delay) FILTER (WHERE id > 4) + 1 AS s, count(*) FILTER (WHERE miles IS NULL) AS no
       FROM flights GROUP BY upper(carrier)""",
    "SELECT DISTINCT carrier, day FROM flights WHERE id > 2",
    """SELECT tag, sum(Delay * 2 + 1) AS s FROM (SELECT Delay, tags FROM flights)
       LATERAL VIEW explode(split(tags, ',')) t AS tag GROUP BY tag""",
]
BY_KEY = [
    """SELECT carrier, sum(miles) AS s, avg(miles) AS a, max(miles) AS m, count(DISTINCT Delay) AS d, median(Delay) AS e
       FROM flights GROUP BY carrier HAVING count(*) > 1 OR avg(miles) > 3""",
    """SELECT carrier, date(at) AS day, sum(Delay / 2) FILTER (WHERE id > 2) AS s, min(fare) AS m
       FROM flights GROUP BY ALL""",
    "SELECT f.id, f.carrier, c.name, f.miles FROM flights f LEFT JOIN carriers c ON f.carrier = c.code AND c.rank > 1",
    "SELECT f.id, c.code, c.name FROM flights f RIGHT JOIN carriers c ON c.code = f.carrier WHERE rank < 4",
    """SELECT * FROM (SELECT carrier, id FROM flights)
       FULL JOIN (SELECT code AS carrier, name FROM carriers) USING (carrier)""",
    "SELECT id, carrier FROM flights LEFT ANTI JOIN carriers ON carrier = code",
    """SELECT carrier, name, sum(miles) AS s, avg(Delay) AS a FROM flights JOIN carriers ON carrier = code
       GROUP BY 1, 2""",
    """SELECT id, carrier, rank() OVER w AS r, sum(Delay) OVER w AS s, avg(Delay) OVER (PARTITION BY carrier) AS a
       FROM flights WINDOW w AS (PARTITION BY carrier ORDER BY id, at)""",
    "SELECT carrier FROM flights EXCEPT SELECT code FROM carriers WHERE rank > 2",
    "SELECT * FROM flights QUALIFY rank() OVER (PARTITION BY carrier ORDER BY at) = 1",
    """SELECT f.id, f.carrier < 'B' OR f.carrier IS NULL AS either, c.name
       FROM flights f LEFT JOIN carriers c ON f.carrier = c.code""",
]

SPOKEN = r"""
'it''s'
'a' 'b'
"quoted"
'a\nb'
r'a\nb'
'100\%'
x'ff'
1.5
1.50D
1e3
2L
3S
1.10BD
-Delay
- -id
Delay / 7
Delay % 7
Delay DIV 7
mod(id, 5)
pmod(-id, 5)
id + id * 2 - (id - 1)
fare * 1.5 / 3
id & 3 | 4 ^ 1
~id
id = 3 OR id > 4 AND id < 8
NOT id = 3
!(id = 3)
id <> 3
id != 3
id == 3
day IS NOT NULL
day IS DISTINCT FROM date(at)
id BETWEEN 3 AND 5
id NOT IN (3, 4)
carrier LIKE 'A%'
tags LIKE '%\_'
tags LIKE '%/_' ESCAPE '/'
tags ILIKE 'A%'
tags RLIKE '^a|b'
tags LIKE ANY ('a%', 'd')
carrier || '-' || id
concat_ws('-', carrier, tags)
coalesce(tags, 'none')
nvl(tags, carrier)
nvl2(tags, 1, 2)
ifnull(Delay, 0)
nullif(Delay, 3)
if(id > 3, 'x', 'y')
CASE WHEN id > 3 THEN 1 WHEN id > 2 THEN 2 END
CASE id WHEN 3 THEN 'a' ELSE 'b' END
decode(id, 3, 'a', 'b')
greatest(id, 4)
least(id, Delay)
abs(Delay)
round(fare, 1)
bround(fare)
ceil(miles)
floor(fare)
sign(Delay)
sqrt(id)
pow(id, 2)
log(2, id)
ln(id)
exp(id)
CAST(id AS string)
CAST(fare AS decimal(10, 1))
CAST('2026-01-02' AS date)
id::double
string(id)
try_cast(tags AS int)
DATE '2026-01-02'
TIMESTAMP '2026-01-02 03:04:05'
date(at)
to_date(at)
year(at)
month(at)
dayofweek(at)
hour(at)
extract(MINUTE FROM at)
date_part('DAY', at)
date_trunc('DAY', at)
trunc(day, 'MM')
date_add(day, 3)
date_sub(day, 3)
dateadd(DAY, 1, day)
datediff(day, date(at))
date_diff(DAY, day, date(at))
timestampdiff(HOUR, at, timestamp '2026-02-01 00:00:00')
add_months(day, 1)
last_day(day)
months_between(day, at)
date_format(at, 'yyyy-MM')
from_unixtime(id)
unix_timestamp(at)
unix_micros(at)
to_timestamp('2026-01-02 03:04:05')
at + INTERVAL 3 DAYS
at - INTERVAL '1' HOUR
day + 1
upper(carrier)
lower(carrier)
length(tags)
char_length(tags)
substr(tags, 2, 1)
substring(tags FROM 2 FOR 1)
left(tags, 1)
right(tags, 1)
trim(BOTH 'a' FROM tags)
ltrim(tags)
lpad(carrier, 3, '.')
instr(tags, 'b')
locate('b', tags)
position('b' IN tags)
replace(tags, ',', ';')
translate(tags, 'ab', 'xy')
overlay(tags PLACING 'x' FROM 1)
regexp_replace(tags, '([a-b])', '<$1>')
regexp_extract(tags, '([a-d])', 1)
split(tags, ',')[0]
split_part(tags, ',', 1)
initcap(tags)
repeat(carrier, 2)
reverse(tags)
ascii(carrier)
char(65)
chr(66)
hex(id)
md5(carrier)
sha2(carrier, 256)
hash(carrier)
xxhash64(carrier, id)
crc32(carrier)
base64(carrier)
size(split(tags, ','))
array(1, 2)[1]
element_at(array(1, 2), -1)
sort_array(split(tags, ','))[0]
array_contains(split(tags, ','), 'a')
map('a', 1)['a']
struct(id AS x).x
named_struct('x', id).x
transform(split(tags, ','), x -> upper(x))[0]
exists(split(tags, ','), x -> x = 'a')
aggregate(array(1, 2), 0, (a, x) -> a + x)
filter(array(1, 2), x -> x > 1)[0]
get_json_object('{"a": 1}', '$.a')
from_json('{"a": 1}', 'a INT').a
to_json(named_struct('Xy', id))
isnan(miles)
isnull(tags)
typeof(id / 2)
""".strip().splitlines()
"""Expressions of all sorts, to be written as they were read."""


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Any]:
    from pyspark.sql.functions import udf

    spark.udf.register(EXACT_SUM, udf(exact_sum, "double", useArrow=True))
    # For so few rows compiling costs more than it saves.
    compiled = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {name: spark.conf.get(name) for name in compiled}
    for settings in (compiled, before):
        for name, value in settings.items():
            spark.conf.set(name, value)
        if settings is compiled:
            yield spark


@pytest.mark.parametrize(
    "select", budget(ci=[BY_ROW[1], SUMS[1], BY_KEY[0], BY_KEY[2]], deep=[*BY_ROW, *SUMS, *BY_KEY])
)
def test_modes_agree_bit_by_bit(engine: Any, select: str) -> None:
    recipe = analysed(select, INPUTS)
    mode = Mode.BY_ROW if select in BY_ROW else Mode.BY_KEY
    assert (recipe.mode, recipe.by_key is not None and recipe.by_key.delta is not None) == (mode, select in SUMS)
    old, changes = random_inputs(random.Random(select))
    new = {name: summed(rows, changes[name]) for name, rows in old.items()}
    current = queried(engine, old, recipe.whole)
    before, after = answer(current), answer(queried(engine, new, recipe.whole))
    expected = less(after, before)
    assert expected, "the changes change something"
    if recipe.by_row is not None:
        assert by_row(engine, recipe.by_row, changes) == expected
    if recipe.by_key is not None:
        places = [recipe.columns.index(name) for name in recipe.by_key.key_columns]
        keys, desired = touched(engine, recipe.by_key, new, changes)
        assert less(desired, restricted(before, places, keys)) == expected
        if recipe.by_key.delta is not None:
            keys, desired = grown(engine, recipe.by_key, current, changes)
            assert less(desired, restricted(before, places, keys)) == expected


def test_a_row_without_a_value_and_giants_are_retracted(engine: Any) -> None:
    """10, null and 20, of which null goes: two rows of mean 15. 1e16, 1 and -1e16 sum to 1, and so they do without the
    giants."""
    delays = "SELECT carrier, count(*) AS n, avg(Delay) AS mean FROM flights GROUP BY carrier"
    miles = "SELECT carrier, sum(miles) AS s FROM flights GROUP BY carrier"
    flights = [_of("A", number, delay, of) for number, (delay, of) in enumerate(zip(DELAYS, MILES, strict=True))]
    inputs = {"flights": Counter(dict.fromkeys(flights, 1)), "carriers": Counter[Row]()}

    grows = analysed(delays, INPUTS)
    assert grows.by_key is not None
    assert grows.by_key.delta is not None
    current = queried(engine, inputs, grows.whole)
    assert [row[:3] for row in answer(current)] == [("A", 3, as_row([15.0])[0])]
    changes = {"flights": Counter({flights[1]: -1}), "carriers": Counter[Row]()}
    _, desired = grown(engine, grows.by_key, current, changes)
    assert [row[:3] for row in desired] == [("A", 2, as_row([15.0])[0])]

    exact = analysed(miles, INPUTS)
    assert exact.by_key is not None
    assert list(answer(queried(engine, inputs, exact.whole))) == [("A", as_row([1.0])[0])]
    changes["flights"] = Counter({flights[0]: -1, flights[2]: -1})
    left = {**inputs, "flights": summed(inputs["flights"], changes["flights"])}
    assert list(touched(engine, exact.by_key, left, changes)[1]) == [("A", as_row([1.0])[0])]


DELAYS, MILES = (10, None, 20), (1e16, 1.0, -1e16)


def _of(carrier: str, number: int, delay: int | None, miles: float) -> Row:
    return carrier, number, delay, miles, datetime(2026, 1, 1, tzinfo=UTC), None, None, None


def test_what_spark_knows_of_its_functions_is_known_here(engine: Any) -> None:
    package = "org.apache.spark.sql.catalyst.expressions."
    functions = ((function.name, str(function.className)) for function in engine.catalog.listFunctions())
    named = {name: path for name, path in functions if path.startswith(package)}
    assert len(named) > 300

    def of(*traits: str) -> set[str]:
        load = engine._jvm.java.lang.Class.forName
        kinds = [load(package + trait) for trait in traits]
        return {name for name, path in named.items() if any(kind.isAssignableFrom(load(path)) for kind in kinds)}

    changing = of("Nondeterministic", "ExpressionWithRandomSeed") | {
        name for name in named if name.startswith("current_")
    }
    assert sorted(name for name in changing if not why_refused(name)) == []
    summing = of("aggregate.AggregateFunction", "RuntimeReplaceableAggregate") - of("AggregateWindowFunction")
    assert sorted(name for name in summing if name not in AGGREGATES and not why_refused(name)) == []
    # Tables of Spark's own, which are refused as all table functions that are none of these.
    assert sorted(name for name in of("Generator") if name not in GENERATORS) == ["collations", "sql_keywords"]


def test_what_is_written_again_says_the_same(engine: Any) -> None:
    listed = ", ".join(f"{one} AS c{at}" for at, one in enumerate(SPOKEN))
    select = f"SELECT id, at, {listed} FROM flights f WHERE id BETWEEN 2 AND 9 AND NOT (Delay IS NULL OR miles <=> 0)"
    old, _ = random_inputs(random.Random(1))
    assert answer(queried(engine, old, analysed(select, INPUTS).whole)) == answer(queried(engine, old, select))


def by_row(spark: Any, rule: ByRow, changes: Mapping[str, Rows]) -> Rows:
    """What the changes of one input amount to."""
    total: Rows = Counter()
    for (*row, time, event_time, diff), count in answer(queried(spark, changes, rule.select)).items():
        assert (time, event_time) == (7, 5)
        total[tuple(row)] += diff * count
    return without_zeros(total)


def touched(spark: Any, rule: ByKey, new: Mapping[str, Rows], changes: Mapping[str, Rows]) -> tuple[set[Row], Rows]:
    """The touched keys, and the rows that the definition has of them."""
    keys = queried(spark, changes, " UNION ".join(rule.touched.values())).toArrow()
    spark.createDataFrame(keys).createOrReplaceTempView(TOUCHED)
    return {as_row(row.values()) for row in keys.to_pylist()}, answer(queried(spark, new, rule.select))


def grown(spark: Any, rule: ByKey, current: Any, changes: Mapping[str, Rows]) -> tuple[set[Row], Rows]:
    """The groups of changed rows, and their rows as they are to be."""
    delta = queried(spark, changes, rule.delta or "")
    assert sorted(name for name in delta.columns if not name.startswith("k")) == sorted(rule.sums)
    delta.createOrReplaceTempView(DELTA)
    current.createOrReplaceTempView(CURRENT)
    names = [f"k{at}" for at in range(len(rule.key_columns))]
    keys = {as_row(row[name] for name in names) for row in delta.select(names).toArrow().to_pylist()}
    return keys, answer(spark.sql(rule.grown or ""))


def restricted(rows: Rows, places: Sequence[int], keys: set[Row]) -> Rows:
    return Counter({row: count for row, count in rows.items() if tuple(row[at] for at in places) in keys})


def queried(spark: Any, inputs: Mapping[str, Rows], query: str) -> Any:
    """A query over inputs, each as often as it says, and as changes at time 7 of event time 5."""
    for shape in (FLIGHTS, CARRIERS):
        names = ", ".join(column.name for column in shape.columns)
        types = ", ".join(f"{column.name} {sql_type(column.type)}" for column in shape.columns)
        rows = [(*row, count) for row, count in inputs[shape.name].items()]
        frame = spark.createDataFrame(rows, f"{types}, {DIFF} bigint")
        changed = frame.selectExpr("*", f"7L AS {TIME}", f"5L AS {EVENT_TIME}")
        changed.createOrReplaceTempView(changes_of(shape.name))
        frame.selectExpr(*names.split(", "), f"explode(sequence(1L, {DIFF})) AS _at").drop("_at").where(
            f"{shape.key[0]} IS NOT NULL"
        ).createOrReplaceTempView(shape.name)
    return spark.sql(query)


def answer(frame: Any) -> Rows:
    return Counter(as_row(row.values()) for row in frame.toArrow().to_pylist())


def as_row(values: Iterable[Any]) -> Row:
    """Values that are equal if their bits are."""
    return tuple(struct.pack("<d", value) if isinstance(value, float) else value for value in values)


def less(rows: Rows, others: Rows) -> Rows:
    return without_zeros(Counter({row: rows[row] - others[row] for row in {*rows, *others}}))


def summed(rows: Rows, changes: Rows) -> Rows:
    return without_zeros(Counter({row: rows[row] + changes[row] for row in {*rows, *changes}}))


def without_zeros(rows: Rows) -> Rows:
    return Counter({row: count for row, count in rows.items() if count})


def random_inputs(chance: random.Random) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """Inputs, and changes of them: rows that come, go, and change."""
    flights = Counter(_flight(chance) for _ in range(60))
    flights.update(dict.fromkeys(list(flights)[:5], 1))  # some rows there are twice
    carriers = Counter({(code, f"name of {code}", chance.randint(1, 4)): 1 for code in "ABCDE"})
    changes: Rows = Counter(dict.fromkeys(chance.sample(sorted(flights, key=repr), 12), -1))
    changes.update(dict.fromkeys(list(flights)[:2], -1))
    changes.update(Counter(_flight(chance) for _ in range(8)))
    (gone, _, _), (other, *_) = chance.sample(sorted(carriers), 2)
    renamed: Rows = Counter({row: -1 for row in carriers if row[0] in (gone, other)})
    renamed.update({(other, "another name", 1): 1, ("F", "name of F", 3): 1})
    return {"flights": flights, "carriers": carriers}, {"flights": without_zeros(changes), "carriers": renamed}


def _flight(chance: random.Random) -> Row:
    giant = chance.choice([1e16, -1e16, 1e300, 1e-300, 5e-324, 0.1, -0.0])
    miles = chance.choice([None, giant, chance.uniform(-5, 5), float(chance.randint(0, 3))])
    return (
        chance.choice("ABCDG"),
        chance.randint(1, 12),
        chance.choice([None, chance.randint(-20, 60), 2**53 + chance.randint(0, 9)]),
        miles,
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=chance.randint(0, 60)),
        chance.choice([None, date(2026, 1, chance.randint(1, 3))]),
        chance.choice([None, Decimal(chance.randint(-99999, 99999)) / 100]),
        chance.choice([None, "a,b", "b,c,d", "d"]),
    )

"""What no definition may be is refused in one line that says where, and what to write instead."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import columns, recipe
from tidemark.definition.analysed import analysed
from tidemark.definition.parse import MAX_TEXT, inputs_of
from tidemark.definition.recipe import InputShape
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Validity

CALLS = [
    *("now()", "current_timestamp()", "CURRENT_TIMESTAMP", "current_date", "curdate()", "localtimestamp()", "rand()"),
    *("randn(3)", "random()", "uuid()", "shuffle(array(1))", "monotonically_increasing_id()", "input_file_name()"),
    *("spark_partition_id()", "current_user()", "user()", "session_user()", "current_timezone()", "uniform(1, 2)"),
    *("randstr(3)", "reflect('java.lang.System', 'exit')", "java_method('a', 'b')", "aes_encrypt(carrier, 'k')"),
    *("raise_error('no')", "version()", "from_protobuf(carrier, 'm', '/etc/x')"),
]
TEXTS = [
    ("", "holds 0 statements"),
    ("SELECT 1 AS one", "reads no collection"),
    ("VALUES (1)", "is a VALUES, no query"),
    ("SELECT * FROM flights; SELECT 2", "holds 2 statements"),
    ("INSERT INTO x SELECT 1", "is a INSERT, no query"),
    ("CREATE TABLE x AS SELECT 1", "is a CREATE, no query"),
    ("DROP TABLE flights", "is a DROP, no query"),
    ("SET x = 1", "no query"),
    ("SELECT 1; DROP", "holds 2 statements"),
    ("flights", "is an expression, no query"),
    ("-5m", "is an expression, no query"),
    ("SELECT id FROM flights WHERE delay >", "cannot be read: something is missing (line 1, column"),
    ("SELECT *\nFROM", "cannot be read: Expected table name"),
    ("SELECT *\nFROM flights WHERE (id", "(line 2, column 22"),
    ("(" * 5000 + "SELECT 1" + ")" * 5000, "nested too deeply"),
    (f"SELECT * FROM flights -- {'x' * MAX_TEXT}", "characters; it may have 100,000"),
    ("SELECT '${env:HOME}' AS home FROM flights", "holds ${…}"),
    ("SELECT * FROM parquet.`/etc/x`", "a file or another database's table"),
    ("SELECT * FROM other.flights", "a file or another database's table"),
    ("SELECT * FROM `../flights`", "cannot be the name of a collection"),
    ("SELECT * FROM read_files('/x')", "the table function read_files"),
    ("SELECT * FROM identifier('flights')", "the table function identifier"),
    ("SELECT * FROM flights VERSION AS OF 3", "as of a version"),
    ("SELECT * FROM flights TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT * FROM flights PIVOT (sum(id) FOR carrier IN ('a'))", "PIVOT"),
    ("SELECT * FROM flights NATURAL JOIN carriers", "write USING"),
    ("SELECT * FROM flights, LATERAL (SELECT 1)", "LATERAL subquery"),
    ("SELECT TRANSFORM(id) USING 'cat' AS (x) FROM flights", "runs a script"),
    ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a, flights", "WITH RECURSIVE"),
    ("SELECT :x AS x FROM flights", "has a parameter"),
    ("SELECT ? AS x FROM flights", "has a parameter"),
    ("SELECT * FROM flights FOR UPDATE", "FOR UPDATE"),
    ("SELECT id FROM (flights JOIN carriers ON true)", "has a join in parentheses"),
    ("SELECT hash(*) AS h FROM flights", "has a * as an argument"),
    ("SELECT struct(f.*) AS h FROM flights f", "has a * as an argument"),
    ("SELECT count(f.*) AS n FROM flights f", "write count(*)"),
    ("SELECT count(DISTINCT *) AS n FROM flights f", "has a * as an argument"),
    ("SELECT DISTINCT ON (id) id FROM flights f", "DISTINCT ON"),
    ("SELECT * FROM flights _touched", "call it otherwise"),
    *(
        (f"SELECT *\nFROM flights WHERE id = {call}", f"calls {call.partition('(')[0].lower()}, which")
        for call in CALLS
    ),
    ("SELECT unix_timestamp() AS x FROM flights", "give it a column"),
]
NAMES = [
    ("SELECT * FROM flihgts", "reads flihgts, which `from` does not name; did you mean 'flights'?"),
    ("SELECT id,\n deley FROM flights", "the column deley (line 2), which no table there has; did you mean 'Delay'?"),
    ("SELECT f.deley FROM flights f", "the column deley, which its table does not have; did you mean 'Delay'?"),
    ("SELECT x.id FROM flights f", "names x.id (line 1), but no table there is called x"),
    ("SELECT a.rank FROM carriers a, carriers b WHERE name = 'x'", "which a and b both have; write a.name"),
    ("SELECT id FROM flights WHERE EXISTS (SELECT 1 FROM carriers c WHERE c.cod = carrier)", "did you mean 'code'?"),
    ("SELECT nam FROM (SELECT upper(name) AS name FROM carriers)", "did you mean 'name'?"),
    ("SELECT id, _time FROM flights", "those that start with _ are Tidemark's"),
    ("SELECT id AS _id FROM flights", "names that start with _ are Tidemark's, call it id"),
    ("SELECT id, carrier AS ID FROM flights", "two columns called ID"),
    ("SELECT * FROM carriers a JOIN carriers b ON a.code = b.code", "two columns called code"),
    ("SELECT id AS diff FROM flights", "column diff is reserved"),
    ("SELECT id AS `no name` FROM flights", "'no name'; a name must match"),
    ("SELECT id, count(*) FROM flights GROUP BY id", "does not name the column COUNT(*) (line 1); add AS and a name"),
    ("SELECT n FROM (SELECT count(*) FROM flights)", "does not name the column COUNT(*)"),
    ("SELECT id FROM flights UNION ALL SELECT id, carrier FROM flights", "1 and 2 columns"),
    ("SELECT carrier || count(*) AS x FROM flights GROUP BY ALL", "name the columns to group by"),
    ("SELECT rank() OVER v AS r FROM carriers WINDOW w AS (ORDER BY code)", "a window v, which WINDOW does not define"),
    ("SELECT * FROM flights LATERAL VIEW explode(split(tags, ',')) t", "a * of something whose columns are not known"),
]


CLOCKS = [
    *("at < timestamp'now'", "at < 'today'", "at BETWEEN ' Yesterday ' AND '2020-01-01'", "at IN ('tomorrow UTC')"),
    *("CAST(at AS date) = date 'today'", "at > CAST('now' AS timestamp)", "at > 'now'::timestamp"),
    *("at > to_timestamp('now')", "datediff('today', at) > 1", "at > coalesce(NULL, 'now')", "year('now') = 2020"),
    "CASE at WHEN 'today' THEN true END",
]
WORDS = [
    *("carrier = 'today'", "'now' = carrier", "carrier IN ('now', 'then')", "carrier LIKE 'today'"),
    *("coalesce(carrier, 'now') = 'x'", "carrier || 'now' = 'x'", "CASE carrier WHEN 'today' THEN true END"),
    *("at < '2020-01-01'", "carrier = 'nowhere'"),
]


@pytest.mark.parametrize("where", CLOCKS)
def test_texts_that_are_the_time_it_is_are_refused(where: str) -> None:
    with pytest.raises(InvalidUsage, match="which Spark takes for the time at which it runs"):
        recipe(f"SELECT id FROM flights WHERE {where}")


@pytest.mark.parametrize("where", WORDS)
def test_texts_that_stay_texts_are_taken(where: str) -> None:
    recipe(f"SELECT id, 'now' AS said FROM flights WHERE {where}")


@pytest.mark.parametrize(("select", "message"), [*TEXTS, *NAMES], ids=lambda text: text[:60])
def test_is_refused_in_one_line(select: str, message: str) -> None:
    with pytest.raises(InvalidUsage) as refusal:
        recipe(select)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith("the select ")


@pytest.mark.parametrize(("select", "message"), TEXTS, ids=lambda text: text[:60])
def test_what_needs_no_columns_is_refused_where_the_file_is_parsed(
    select: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidUsage) as refusal:
        inputs_of(select)
    assert message in str(refusal.value)
    assert caplog.text == ""  # the refusal is all that is said


@pytest.mark.parametrize(
    ("select", "inputs"),
    [
        ("SELECT * FROM carriers JOIN flights ON true", ("carriers", "flights")),
        ("WITH a AS (SELECT * FROM flights), b AS (SELECT * FROM a) SELECT * FROM b, a", ("flights",)),
        ("WITH flights AS (SELECT * FROM flights) SELECT * FROM flights", ("flights",)),
        ("SELECT * FROM a WHERE x IN (SELECT y FROM b)", ("a", "b")),
        ("SELECT * FROM Flights UNION ALL SELECT * FROM FLIGHTS", ("flights",)),
        ("SELECT * FROM range(3) r, flights", ("flights",)),
        ("(SELECT * FROM flights)", ("flights",)),
        ("SELECT * FROM (flights)", ("flights",)),
    ],
)
def test_inputs_are_the_tables_that_the_text_does_not_define(select: str, inputs: tuple[str, ...]) -> None:
    assert inputs_of(select) == inputs


def test_validity_is_of_rows() -> None:
    valid = Validity("at", valid_for=30)
    recipe("SELECT id, at FROM flights", validity=valid)
    with pytest.raises(InvalidUsage, match="leave valid_from, valid_to and valid_for out"):
        recipe("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier", validity=valid)


def test_columns_keep_the_case_in_which_they_are_written() -> None:
    assert recipe("SELECT ID, Delay AS dElay, upper(CARRIER) AS Carrier FROM Flights").columns == (
        "id",
        "dElay",
        "Carrier",
    )


def test_names_that_differ_in_case_are_one_to_spark() -> None:
    one = InputShape("one", columns("Code:string Name:string"), ("Code",))
    other = InputShape("other", columns("code:string name:string"), ("code",))
    found = analysed("SELECT a.CODE AS c, b.name FROM one a JOIN other b ON a.code = b.Code", (one, other))
    assert found.by_key is not None
    assert found.by_key.key_columns == ("c",)
    assert found.by_key.clustered == {"one": (("Code", "k0"),), "other": (("code", "k0"),)}


def test_keys_are_those_of_the_inputs_or_what_rows_are_grouped_by() -> None:
    def key(select: str) -> tuple[str, ...] | None:
        return recipe(select).key

    assert key("SELECT * FROM flights") == ("carrier", "id")
    assert key("SELECT id AS i, carrier, tag FROM flights LATERAL VIEW explode(split(tags, ',')) t AS tag") == (
        "carrier",
        "i",
    )
    assert key("SELECT id FROM flights") is None
    assert key("SELECT day, carrier, count(*) AS n FROM flights GROUP BY ALL") == ("day", "carrier")
    assert key("SELECT carrier FROM flights GROUP BY carrier, day") is None
    assert key("SELECT DISTINCT day FROM flights") == ("day",)
    assert key("SELECT DISTINCT miles FROM flights") == ("miles",), "refused by its name where it is declared"
    assert key("SELECT count(*) AS n, day, miles FROM flights GROUP BY day, miles") == ("day", "miles")
    assert key("SELECT carrier, id, name FROM flights LEFT JOIN carriers ON carrier = code") == ("carrier", "id")
    assert key("SELECT carrier, id, name FROM flights JOIN carriers ON carrier = code") == ("carrier", "id")
    assert key("SELECT carrier, id, code FROM flights JOIN carriers ON tags = name") == ("carrier", "id", "code")
    assert key("SELECT carrier, id, code FROM flights FULL JOIN carriers ON carrier = code") is None
    assert key("SELECT carrier FROM flights EXCEPT SELECT code FROM carriers") == ("carrier",)

"""Expressions of rows that are computed without Spark give what Spark gives, value by value: random ones of every form
over rows of hard values, and those that people write. What only one of both can compute is
left to Spark, never wrong."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException

from tests.spark.support import HOUR, Made, day_of
from tests.spark.test_grouped_here import UPSERT, land, refreshed, row, unbuilt
from tests.support.budget import budget
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InputShape
from tidemark.definition.resolve import spelled_alike
from tidemark.definition.steps import Steps
from tidemark.definition.windows.expressions import row_expression
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.correct import correct
from tidemark.model.collection import Column, ColumnType, DecimalType, ValueType
from tidemark.model.derived import Definition
from tidemark.model.expression import Projection
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding, Tumbling
from tidemark.model.window.windows import Windows
from tidemark.spark.derive.columns import our_type
from tidemark.spark.derive.settings import isolated_session

pytestmark = pytest.mark.spark

DAY = 24 * HOUR
TYPES: dict[str, ValueType] = {
    "n": ColumnType.INT,
    "m": ColumnType.INT,
    "note": ColumnType.STRING,
    "tag": ColumnType.STRING,
    "ratio": ColumnType.FLOAT,
    "rate": ColumnType.FLOAT,
    "at": ColumnType.TIMESTAMP,
    "since": ColumnType.TIMESTAMP,
    "day": ColumnType.DATE,
    "ok": ColumnType.BOOL,
    "good": ColumnType.BOOL,
    "price": DecimalType(12, 2),
    "fee": DecimalType(9, 4),
    "wide": DecimalType(38, 10),
}
HARD: dict[str, list[Any]] = {
    "n": [None, 0, 1, -1, 2, -7, 31, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "m": [None, 0, 1, -1, 3, 10, -3, 2**31, 2**32 + 1, -(2**63), 3_037_000_500],
    "note": [None, "", "a", "A", "ab", "a%b", "a_b", "é", "\U0001f600x", "it's", "line\nbreak"],
    "tag": [None, "", "a", "b", "ab", "\uffee"],
    "ratio": [None, 0.0, -0.0, 0.1, 1.0, math.nan, math.inf, -math.inf, 5e-324, 2.0**53, 1e308],
    "rate": [None, 0.0, 0.2, -1.5, math.nan, 3.0, 1e-308],
    "at": [None, 0, -1, 1, DAY, DAY - 1, 1_700_000_000_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999],
    "since": [None, 0, DAY // 2, 1_700_000_000_000_000],
    "day": [None, 0, 1, -1, 19_000, -719_162, 2_932_896],
    "ok": [None, True, False],
    "good": [None, True, False],
    "price": [None, Decimal("0.00"), Decimal("0.25"), Decimal("-0.01"), Decimal("9999999999.99")],
    "fee": [None, Decimal("0.0000"), Decimal("12345.6789"), Decimal("-99999.9999")],
    "wide": [None, Decimal("0E-10"), Decimal("1.5000000000"), Decimal(f"{'9' * 28}.{'9' * 10}")],
}
TAME: dict[str, list[Any]] = {
    **HARD,
    "n": [None, 0, 1, 2, -7, 31, 1000],
    "m": [None, 1, 3, 10, -3],
    "rate": [None, 0.25, -1.5, 3.0],
    "ratio": [None, -0.0, 0.1, 1.0, math.nan, math.inf],
    "wide": [None, Decimal("1.5000000000"), Decimal("-2.2500000000")],
}
"""Values of which sums and products fit, and by which one can divide."""
SHAPE = InputShape("rows", tuple(Column(name, of) for name, of in TYPES.items()), ("n",))
WRITTEN = [
    "n + 1",
    "n - m",
    "n * m",
    "n / m",
    "n / 60",
    "n % 7",
    "n div m",
    "mod(n, 3)",
    "-n",
    "abs(m)",
    "n * 1.5",
    "price * 2",
    "price + fee",
    "price - 0.01",
    "price * fee",
    "-price",
    "ratio * rate",
    "ratio / rate",
    "ratio + 0.1",
    "ratio % 2",
    "-ratio",
    "price * n",
    "date(at)",
    "CAST(at AS date)",
    "to_date(at)",
    "CAST(day AS timestamp)",
    "year(at)",
    "quarter(day)",
    "month(day)",
    "day(at)",
    "hour(at) + 1",
    "minute(at) * 60 + second(at)",
    "length(note)",
    "CAST(n AS int)",
    "CAST(m AS decimal(20, 2))",
    "CAST(price AS decimal(20, 4))",
    "CAST(n AS double)",
    "CAST(n AS string)",
    "coalesce(n, m, 0)",
    "ifnull(price, 0)",
    "nvl(note, 'none')",
    "nullif(n, 0)",
    "coalesce(day, DATE '2020-01-01')",
    "IF(n > m, n, m)",
    "CASE WHEN price > fee THEN price ELSE 0 END",
    "CASE WHEN ok THEN 1 WHEN good THEN 2.5 END",
    "CASE n WHEN 0 THEN 'zero' WHEN 1 THEN 'one' ELSE note END",
    "CASE WHEN m != 0 THEN n / m END",
    "CASE WHEN m = 0 OR n % m = 0 THEN 1 ELSE 0 END",
    "n > m",
    "ratio >= rate",
    "note = tag",
    "note < tag",
    "at > since",
    "at < day",
    "price = fee",
    "ok = good",
    "ok AND n + m > 3",
    "NOT (n IS NULL) OR good",
    "note LIKE 'a%'",
    "note NOT LIKE '%b'",
    "note LIKE '%\n%'",
    "note LIKE 'ab'",
    "n + m BETWEEN 1 AND 10",
    "n % 3 IN (0, 1)",
    "date(at) = '2023-11-14'",
    "n <=> m",
    "price <=> NULL",
    "(n + 1) * (m - 1) > 0",
    "price > n",
    "price * 1.10 > fee",
    "wide = price",
    # Literals beside which a column's values stand.
    *("n < 0.5", "n >= -1.0", "n <> 9007199254740993", "9223372036854775807 > n", "n BETWEEN -1 AND 0.5"),
    *("ratio = 0.1", "ratio <= 9007199254740993", "ratio > -0.0", "ratio = 0.10000000000000000000001"),
    *(
        "price < 0.255",
        "price <= 9999999999.99",
        "price NOT IN (0, 0.25)",
        "note IN ('', 'é', 'it\\'s')",
        "'ab' >= note",
    ),
    *("at >= '1970-01-01'", "at < TIMESTAMP '1970-01-02 00:00:00'", "at = '1970-01-01T01:00:00+01:00'"),
    *(
        "day <= '2022-01-08'",
        "day = DATE '1970-01-02'",
        "ok = TRUE",
        "NOT ok",
        "day NOT BETWEEN '0001-01-01' AND '1970-01-01'",
    ),
]
LEFT = {
    "upper(note)": "more than columns",
    "price / 3": "rounds quotients",
    "note LIKE 'a_'": "pattern",
    "CAST(note AS int)": "reads",
    "CAST(price AS int)": "rounds",
    "CAST(price AS decimal(5, 1))": "rounds",
    "wide * wide": "digits",
    "wide + price": "39 digits",
    "try_cast(n AS int)": "hides",
    "note > 5": "text",
}


@dataclass(frozen=True)
class Read:
    """An expression as it is read: its SQL, and how rows get it as the column `name`."""

    text: str
    sql: str
    name: str
    type: ValueType
    projection: Projection


def read(text: str) -> Read:
    found = row_expression(text, "of", SHAPE, spelled_alike([SHAPE]))
    node: Any = parsed(f"SELECT {found.sql} FROM w")
    steps = Steps(TYPES)
    name = steps.column(node.selects[0].unalias())
    of = steps.type_of(name)
    return Read(text, found.sql, name, of, Projection(steps.named, {} if name in TYPES else {name: of}))


def rows_of(values: dict[str, list[Any]], count: int, seed: int) -> pa.RecordBatch:
    chance = random.Random(seed)
    whole: dict[str, Any] = {"at": pa.int64(), "since": pa.int64(), "day": pa.int32()}
    return pa.record_batch(
        {
            name: pa.array([chance.choice(values[name]) for _ in range(count)], whole.get(name, arrow_type(of))).cast(
                arrow_type(of)
            )
            for name, of in TYPES.items()
        }
    )


LEAVES = {
    "whole": ["n", "m", "1", "2", "-3", "1000", "n", "m"],
    "float": ["ratio", "rate", "CAST(n AS double)"],
    "decimal": ["price", "fee", "0.5", "2.25", "price"],
    "text": ["note", "tag", "'a'", "''", "note"],
    "day": ["day", "DATE '2020-02-29'", "date(at)"],
    "time": ["at", "since", "TIMESTAMP '2023-11-14 22:13:20'"],
    "truth": ["ok", "good", "(n > 0)", "(m IS NULL)", "(note = 'a')", "(price < 1)", "(ratio > 0.5)"],
}
ANY = ["CASE WHEN {truth} THEN {%} ELSE {%} END", "CASE WHEN {truth} THEN {%} END", "coalesce({%}, {%})"]
FORMS = {
    "whole": [
        *(f"({{whole}} {op} {{whole}})" for op in ("+", "-", "*", "+", "-", "*", "%", "div")),
        *(f"{part}({{day}})" for part in ("year", "quarter", "month", "day")),
        *(f"{part}({{time}})" for part in ("year", "hour", "minute", "second")),
        *("-{whole}", "abs({whole})", "nullif({whole}, {whole})", "length({text})"),
    ],
    "float": [
        *(f"({{float}} {op} {{float}})" for op in ("+", "-", "*", "/")),
        *("({whole} / {whole})", "-{float}", "({float} * {decimal})"),
    ],
    "decimal": [
        *(f"({{decimal}} {op} {{decimal}})" for op in ("+", "-", "*")),
        *("({decimal} + {whole})", "CAST({whole} AS decimal(22, 2))"),
    ],
    "text": ["CAST({whole} AS string)"],
    "day": ["date({time})", "CAST({time} AS date)"],
    "time": ["CAST({day} AS timestamp)"],
    "truth": [
        *(
            f"({{{kind}}} {op} {{{kind}}})"
            for kind in ("whole", "float", "decimal", "text", "day", "time")
            for op in ("=", "!=", "<", "<=", ">", ">=")
        ),
        *("({truth} AND {truth})", "({truth} OR {truth})", "(NOT {truth})", "({truth} = {truth})") * 3,
        *("({whole} <=> {whole})", "({whole} IN (1, 2, -7))", "({decimal} BETWEEN {decimal} AND 10)") * 2,
        *("({text} LIKE 'a%')", "({text} LIKE '%b')", "({text} NOT LIKE '%b%')", "({day} IS NULL)", "({day} < {time})"),
    ],
}


def written(chance: random.Random, kind: str, depth: int) -> str:
    """A random expression of a kind of values, as users write them."""
    if depth <= 0 or chance.random() < 0.15:
        return chance.choice(LEAVES[kind])
    form = chance.choice([*FORMS[kind], *(one.replace("%", kind) for one in ANY if kind != "truth")])
    return re.sub(r"\{(\w+)\}", lambda part: written(chance, part[1], depth - 1), form)


def canonical(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values as a collection holds them: one NaN, no -0.0."""
    values = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [None if one is None else "NaN" if math.isnan(one) else one + 0.0 for one in values]


def compared(spark: Any, folder: Path, batch: pa.RecordBatch, asked: list[Read]) -> int:
    """Compare what Spark gives; the number of those that were computed without it. What Spark refuses is refused here,
    too; what is refused here Spark may compute, or refuse."""
    folder.mkdir()
    pyarrow.parquet.write_table(pa.Table.from_batches([batch]), folder / "rows.parquet")
    frame = isolated_session(spark).read.parquet(f"file://{folder}/rows.parquet").alias("rows").coalesce(1)
    computed = 0
    fitting: dict[str, tuple[Read, list[Any]]] = {}
    for one in asked:
        try:
            found = projected(batch, one.projection).column(one.name)
        except Overflowed:
            continue
        assert found.type == arrow_type(one.type), one.text
        fitting[one.text] = one, canonical(found)
    texts = list(fitting)
    for first in range(0, len(texts), 40):
        some = texts[first : first + 40]
        selected = frame.selectExpr(*(f"{fitting[text][0].sql} AS c{at}" for at, text in enumerate(some)))
        types = [our_type("c", field.dataType) for field in selected.schema.fields]
        answer = selected.toArrow()
        for at, text in enumerate(some):
            one, values = fitting[text]
            assert types[at] == one.type, text
            assert values == canonical(answer.column(at).cast(arrow_type(one.type))), text
            computed += 1
    return computed


@pytest.mark.parametrize("values", [HARD, TAME], ids=["hard", "tame"])
def test_what_people_write(spark: Any, tmp_path: Path, values: dict[str, list[Any]]) -> None:
    batch = rows_of(values, 600, 7)
    computed = compared(spark, tmp_path / "rows", batch, [read(text) for text in WRITTEN])
    assert computed == len(WRITTEN) if values is TAME else computed > len(WRITTEN) // 2


@pytest.mark.parametrize("text", LEFT)
def test_what_is_left_to_spark(text: str) -> None:
    with pytest.raises((LeftToSpark, InvalidUsage), match=LEFT[text]):
        read(text)


MANY = budget(ci=100, deep=400)
"""Random expressions that are compared."""


def test_random_expressions(spark: Any, tmp_path: Path) -> None:
    chance = random.Random(26)
    asked: dict[str, Read] = {}
    left = 0
    while len(asked) < MANY:
        text = written(chance, chance.choice(list(FORMS)), chance.randint(1, 3))
        try:
            asked[text] = read(text)
        except LeftToSpark:
            left += 1
        except InvalidUsage:
            continue
    assert left < MANY // 2
    computed = compared(spark, tmp_path / "rows", rows_of(TAME, 300, 8), list(asked.values()))
    assert computed > MANY * 5 // 8


def test_what_is_wrong_in_spark_is_never_computed(spark: Any, tmp_path: Path) -> None:
    """Where Spark raises, so do we: of all rows that we compute it raises for none, and it does for others."""
    texts = [
        "n + m",
        "n * m",
        "n - m",
        "n % m",
        "n div m",
        "n / m",
        "-n",
        "abs(n)",
        "CAST(n AS int)",
        "CAST(m AS decimal(5, 0))",
    ]
    numbers = [one for one in {*HARD["n"], *HARD["m"]} if one is not None]
    frame = isolated_session(spark)
    wrong = 0
    for at, text in enumerate(texts):
        one = read(text)
        ours, batches, refused = list[Any](), list[pa.RecordBatch](), list[pa.RecordBatch]()
        for n, m in random.Random(at).sample([(n, m) for n in numbers for m in numbers], 12):
            batch = rows_of(TAME, 1, 1)
            for name, value in (("n", n), ("m", m)):
                batch = batch.set_column(batch.schema.get_field_index(name), name, pa.array([value], pa.int64()))
            try:
                ours += projected(batch, one.projection).column(one.name).to_pylist()
                batches.append(batch.select(["n", "m"]))
            except Overflowed:
                refused.append(batch.select(["n", "m"]))

        def its(rows: list[pa.RecordBatch], sql: str = one.sql) -> list[Any]:
            table = frame.createDataFrame(pa.Table.from_batches(rows)).alias("rows")
            return table.selectExpr(f"{sql} AS x").toArrow().column(0).to_pylist()

        assert not batches or ours == its(batches), text
        if refused:
            try:
                its(refused)
            except PySparkException:
                wrong += 1
    assert wrong > 5, "texts of which Spark raises for rows that are not computed"


WRONG = Aggregate("total", Function.SUM, "whole * kind")
FAR = {
    "tumbling": Windows(("shop",), "sold", Tumbling(DAY), (WRONG,), early=True),
    "tumbling_of_others": Windows(("note",), "sold", Tumbling(DAY), (WRONG,), early=True),
    "session": Windows(("shop",), "sold", Session(DAY), (WRONG,), early=True),
    "sliding": Windows(("shop",), "sold", Sliding(DAY), (WRONG,), early=True),
    "where": Windows(
        ("shop",), "sold", Sliding(DAY), (Aggregate("n", Function.COUNT),), "whole * kind > 3", early=True
    ),
    "select": "SELECT shop, sum(whole * kind) AS total, max(note) AS last FROM sales GROUP BY shop",
}


@pytest.mark.parametrize("name", budget(ci=["session", "select"], deep=list(FAR)))
def test_what_is_beyond_its_type_stops_the_run_in_one_line(spark: Any, tmp_path: Path, name: str) -> None:
    """When all is built, and when a change brings it; what a condition leaves out does not."""
    made, of = Made(tmp_path, UPSERT), FAR[name]
    definition = Definition(of) if isinstance(of, str) else Definition(windows=of)
    land(made, 1, [row(1, whole=2, kind=2, shop="a"), row(2, whole=None, kind=4, shop="b")])
    grown = unbuilt(made, spark, definition, "grown")
    assert refreshed(grown, here=False)["way"]["place"] == "here"
    land(made, 2, [row(3, whole=2**62, kind=4, shop="b", at=day_of(2).lower)])
    with pytest.raises(InvalidUsage, match="overflow"):
        correct(grown.job())
    other = Made(tmp_path / "other", UPSERT)
    land(other, 1, [row(1, whole=2, kind=2, shop="a"), row(2, whole=2**62, kind=4, shop="b")])
    built = unbuilt(other, spark, definition, "built")
    with pytest.raises(InvalidUsage, match="overflow"):
        correct(built.job())

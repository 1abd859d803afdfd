"""What a definition brings about that Spark has no words for is one short line, with the row where a row did it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.spark.support import APPEND, Made
from tests.spark.test_derived import Deriving, select
from tests.support.budget import budget
from tidemark.errors import InvalidUsage
from tidemark.spark.derive.faults import fault_of_a_row, fault_of_planning
from tidemark.spark.derive.raised import is_about_rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Of which every test derives a collection of its own: few rows, as the one that raises is searched by halves."""
    made = Made(tmp_path_factory.mktemp("faults"), APPEND)
    made.land(1, 40, keys=30)
    made.moved(1)
    made.step("trace", 1)
    return made


BY_ROW = {
    "xpath_string(kind, 'a')": r"Error loading expression 'a': .*Content is not allowed in prolog",
    "xpath_int(concat('<a>', id, '</a>'), 'a[')": r"Invalid XPath 'a\['.*",
    "length(repeat(kind, CAST(id * 100000000 AS int)))": r": repeat would make a text of more than 16777216 bytes",
    "length(repeat(repeat('abcd', 1000000), 1000000))": r": repeat would make a text of more than 16777216 bytes",
    "size(sequence(1, 1000000000 * (id + 1)))": r": sequence would make more than 1000000 of a row",
    "size(array_repeat(kind, CAST(20000000 * (id + 1) AS int)))": r": array_repeat would make more than 1000000",
    "length(lpad(kind, CAST(20000000 * (id + 1) AS int), 'x'))": r": lpad would make more than 1000000 of a row",
}


@pytest.mark.parametrize("expression", budget(ci=list(BY_ROW)[::3], deep=list(BY_ROW)))
def test_what_a_row_brings_about_is_one_line_with_the_row(spark: Any, events: Made, expression: str) -> None:
    name = f"d{list(BY_ROW).index(expression)}"
    made = Deriving(events, spark, name, select(f"SELECT id, {expression} AS x FROM events"), ("id",))
    made.declared()
    with pytest.raises(InvalidUsage, match=rf"{name} raises.*{BY_ROW[expression]}.* for the row id ") as refusal:
        made.corrected()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 800


def test_so_it_is_of_groups(spark: Any, events: Made) -> None:
    text = "SELECT kind, max(xpath_string(kind, 'a')) AS x FROM events GROUP BY kind"
    made = Deriving(events, spark, "groups", select(text), ("kind",))
    made.declared()
    with pytest.raises(InvalidUsage, match=r"groups raises Error loading expression 'a': .*; filter such rows"):
        made.corrected()


CORRELATED = [
    "SELECT id, kind, (SELECT max(e.amount) FROM events e WHERE e.kind = events.kind) AS x FROM events",
    "SELECT id, kind, (SELECT e.amount FROM events e WHERE e.kind = events.kind) AS x FROM events",
    "SELECT kind, id FROM events f WHERE amount > (SELECT avg(amount) FROM events g WHERE g.kind = f.kind)",
    "SELECT kind, max((SELECT max(e.id) FROM events e WHERE e.kind = f.kind)) AS x FROM events f GROUP BY kind",
    "SELECT id, kind, (SELECT count(*) FROM events e WHERE e.id < events.id) AS x FROM events",
]


@pytest.mark.parametrize("text", budget(ci=CORRELATED[:2], deep=CORRELATED))
def test_a_subquery_of_each_row_is_computed_or_refused_in_one_line(spark: Any, events: Made, text: str) -> None:
    name = f"correlated{CORRELATED.index(text)}"
    made = Deriving(events, spark, name, select(text), ("kind",) if "GROUP BY" in text else ("id", "kind"))
    try:
        made.declared()
        made.corrected()
    except InvalidUsage as refusal:
        said = str(refusal)
        print(said)
    else:
        return
    assert "\n" not in said
    assert len(said) < 800
    assert "Py4JJavaError" not in said


PLANNING = """An error occurred while calling o88.write.
: java.lang.UnsupportedOperationException: Cannot evaluate expression: scalar-subquery#7 [kind#1]
	at org.apache.spark.sql.catalyst.optimizer.ConstantFolding$.apply(expressions.scala:80)
	at py4j.Gateway.invoke(Gateway.java:282)"""


def test_what_fails_as_it_is_planned_is_distinguished_from_rows_and_machines() -> None:
    planned, lost = (
        Exception(PLANNING),
        Exception("An error occurred.\n: java.lang.OutOfMemoryError: Java heap space\n"),
    )
    assert fault_of_planning(planned) == "Cannot evaluate expression: scalar-subquery#7 [kind#1]"
    assert not is_about_rows(planned)
    assert (fault_of_planning(lost), fault_of_a_row(lost), is_about_rows(lost)) == ("", "", False)
    at_work = Exception(re.sub("^", "Job aborted due to stage failure: ", PLANNING))
    assert fault_of_planning(at_work) == ""

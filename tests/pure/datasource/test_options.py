"""Options of the data source: each is the argument of the Python API that it is called after, and none is ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidemark
from tests.spark.support import APPEND, HOUR, START, UPDATES, Made
from tidemark.datasource.options import KNOWN, Options, opened, own_columns, question
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant

pytestmark = pytest.mark.pure
NOON = format_instant(START + 12 * HOUR)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = Made(tmp_path_factory.mktemp("options"), APPEND)
    for day in (1, 2):
        made.land(day, 60, keys=20)
        made.moved(day, "ingest", "seal")
    return made


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = Made(tmp_path_factory.mktemp("stock"), UPDATES)
    made.land(1, 60, keys=20)
    made.moved(1, "ingest", "seal")
    return made


def place(made: Made) -> dict[str, str]:
    return {"path": f"{made.root}/{made.name}"}


def asked(made: Made, **options: str) -> tuple[str, list[str]]:
    """What a reader of these options asks, in words, and its rows."""
    options = place(made) | options
    read = Options(options)
    found = question(opened(read), read)
    return repr(found), [str(row) for row in found.to_arrow().to_pylist()]


def test_each_option_is_the_argument_of_that_name(made: Made, stock: Made) -> None:
    flights, prices = (tidemark.open(one.root, one.name) for one in (made, stock))
    before, where = tidemark.open(made.root, made.name, 5), "id < 10 AND kind IS NOT NULL"
    pairs = [
        (asked(made), flights.as_of()),
        (asked(made, as_of=NOON, event_time=NOON), flights.as_of(NOON, NOON)),
        (asked(made, as_of=str(START + HOUR)), flights.as_of(START + HOUR)),
        (asked(made, committed="2400-01-01"), flights.as_of(committed="2400-01-01")),
        (asked(made, columns=" kind, id ", where=where), flights.as_of(columns=["kind", "id"], where=where)),
        (asked(made, version="5"), before.as_of()),
        (asked(made, changes_after="beginning"), flights.changes()),
        (asked(made, changes_upto=NOON), flights.changes(upto=NOON)),
        (asked(made, changes_after=NOON, net="TRUE"), flights.changes(NOON, net=True)),
        (asked(made, changes_after=NOON, where=where, columns="id"), flights.changes(NOON, None, False, "id", where)),
        (asked(stock, range="seen", range_from="1975-01-01"), prices.range("seen", "1975-01-01", None)),
        (
            asked(stock, range="seen", range_from="1960-01-01", range_to="1980-01-01", as_of=NOON),
            prices.range("seen", "1960-01-01", "1980-01-01", time=NOON),
        ),
    ]
    for found, expected in pairs:
        rows = [str(row) for row in expected.to_arrow().to_pylist()]
        assert found == (repr(expected), rows)
        assert rows, expected
    assert before.state.seal < flights.state.seal
    assert Options({"root": str(made.root), "name": made.name}).place == (str(made.root), made.name)


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"committed": "1970-01-02"}, "no commit by then is recorded; the earliest moment"),
    ({"as_of": NOON, "committed": NOON}, "time is a time of the schedule, and committed of the wall clock"),
    ({"asof": NOON}, "there is no option 'asof'; did you mean 'as_of'?"),
    ({"colums": "id"}, "there is no option 'colums'; did you mean 'columns'?"),
    ({"q": "1"}, f"there is no option 'q'; valid are {', '.join(KNOWN)}"),
    ({"columns": "id, kond"}, "columns: collection events has no column 'kond'; did you mean 'kind'?"),
    ({"columns": " , "}, "columns is empty; name some, or leave it out for all"),
    ({"where": "idd = 1"}, "where: collection events has no column 'idd'; did you mean 'id'?"),
    ({"as_of": "noon"}, "not a time: 'noon'; write 2013-01-02, 2013-01-02T03:04:05Z or microseconds"),
    ({"as_of": "2031-01-01"}, "the newest readable is 2024-01-02T23:59:59.999999Z"),
    ({"changes_after": "2031-01-01"}, "the newest readable is 2024-01-02T23:59:59.999999Z"),
    ({"version": "99"}, "there is no version 99; the newest is"),
    ({"version": "٣"}, "option version is '٣'; it is a whole number from 1 on"),
    ({"net": "yes", "changes_after": NOON}, "option net is 'yes'; it is true or false"),
    ({"net": "true"}, "net adds up changes; give changes_after, a time or `beginning`"),
    (
        {"as_of": NOON, "changes_after": NOON},
        "as_of asks for the rows at a time, changes_after for changes; give options of",
    ),
    (
        {"changes_upto": NOON, "multiplicity": "true"},
        "multiplicity asks for the rows at a time, changes_upto for changes",
    ),
    ({"range_from": NOON}, "range_from is an end on a timeline; give its column as option range"),
    ({"range": "amount"}, "column amount of events is of type float; a timeline is of type int, date or timestamp"),
    ({"hold": "mine"}, "option hold is one of spark.readStream; this is spark.read"),
    ({"starting": "newest"}, "option starting is one of spark.readStream; this is spark.read"),
    ({"root": "x"}, "give the path of the collection, or root and name, not both"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[" ".join(options) for options, _ in REFUSED])
def test_what_cannot_be_asked_is_refused_in_a_line(made: Made, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidUsage) as refused:
        asked(made, **options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_place_that_is_none_is_refused_in_a_line(made: Made, tmp_path: Path) -> None:
    for options, message in [
        ({}, "which collection? load its path, such as s3://lake/collections/flights, or give the options root and"),
        ({"root": "x"}, "which collection?"),
        ({"path": f"{made.root}/event"}, "no collection event under"),
        ({"path": f"{tmp_path}/nowhere/events"}, "does not exist"),
        ({"path": "gs://bucket/events"}, "cannot open 'gs://bucket"),
    ]:
        with pytest.raises(InvalidUsage, match=message.replace("?", r"\?")):
            opened(Options(options))


def test_what_is_not_sealed_cannot_be_read(tmp_path: Path) -> None:
    made = Made(tmp_path, APPEND)
    made.land(1, 60, keys=20)
    made.moved(1, "ingest")
    with pytest.raises(InvalidUsage, match="nothing is sealed yet"):
        asked(made)


def test_the_names_of_a_schema_are_columns(made: Made) -> None:
    collection = tidemark.open(made.root, made.name).state.collection
    assert own_columns(collection, Options({}), ["kind", "id"], []) == ("kind", "id")
    assert own_columns(collection, Options({}), ["diff"], ["diff"]) == ()
    some = Options({"columns": "id"})
    for options, names, message in [
        (Options({}), [], "the schema has no columns"),
        (Options({}), ["knid"], "schema: collection events has no column 'knid'; did you mean 'kind'?"),
        (Options({}), ["ID"], "schema: collection events has no column 'ID'"),
        (Options({}), ["id", "id"], "the schema names some columns twice: id, id"),
        (some, ["id", "kind"], "the schema asks for kind, which option columns leaves out"),
    ]:
        with pytest.raises(InvalidUsage) as refused:
            own_columns(collection, options, names, ["diff"])
        assert message in str(refused.value)

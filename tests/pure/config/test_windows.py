"""Files of window collections: what a right one becomes, and the one line each wrong one gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType
from tidemark.model.derived import Definition
from tidemark.model.instant import parse_duration
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Sliding, Tumbling
from tidemark.model.window.windows import Late, Windows

pytestmark = pytest.mark.pure

HOUR = parse_duration("1h")
COUNT = Aggregate("flights", Function.COUNT)


def written(folder: Path, text: str) -> Path:
    path = folder / "by_hour.yaml"
    path.write_text("name: by_hour\nfrom: flights\n" + text)
    return path


def parsed(folder: Path, text: str) -> Definition:
    file = parse(written(folder, text))
    assert isinstance(file, DerivedFile)
    return file.origin.definition


def refusal(folder: Path, text: str) -> str:
    """The one line a file is refused with, its path taken off: `12: message`."""
    path = written(folder, text)
    with pytest.raises(InvalidUsage) as caught:
        parse(path)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{path}:")


def test_everything_they_may_say(tmp_path: Path) -> None:
    text = """\
windows:
  by: [origin, carrier]
  on: scheduled_at
  tumbling: {size: 1h, offset: -15m}
  where: status = 'arrived'
  grace: 2h
  early: true
aggregates:
  flights: count
  known: {count: delay}
  late: {count: "*", where: delay > 0}
  delay: {avg: delay}
  worst: {max: delay, where: "carrier = 'UA'"}
  p90: {approx_quantile: delay, at: 1}
"""
    assert parsed(tmp_path, text).windows == Windows(
        ("origin", "carrier"),
        "scheduled_at",
        Tumbling(HOUR, -HOUR // 4),
        (
            COUNT,
            Aggregate("known", Function.COUNT, "delay"),
            Aggregate("late", Function.COUNT, where="delay > 0"),
            Aggregate("delay", Function.AVG, "delay"),
            Aggregate("worst", Function.MAX, "delay", "carrier = 'UA'"),
            Aggregate("p90", Function.APPROX_QUANTILE, "delay", at=1.0),
        ),
        where="status = 'arrived'",
        grace=2 * HOUR,
        late=Late.REEMIT,
        early=True,
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("tumbling: 0", "5: the size of a tumbling window is 0 µs; it must be 1 or more"),
        ("tumbling: -1h", "5: windows.tumbling.size: duration '-1h' is negative"),
        ("tumbling: 99999999999d", "5: windows.tumbling.size: duration '99999999999d' is outside [0, "),
        ("tumbling: 30000000d", "5: windows.tumbling.size: 30000000d is too long; it may be 20000000d"),
        ("sliding: 30000000d", "5: windows.sliding.size: 30000000d is too long; it may be 20000000d"),
        ("session: {gap: 1h, max_length: 30000000d}",
         "5: windows.session.max_length: 30000000d is too long; it may be"),
        ("tumbling: 1h\n  grace: 30000000d", "6: windows.grace: 30000000d is too long; it may be 20000000d"),
        ("tumbling: 1h\n  late: {reemit: {max_lateness: 30000000d}}", "6: windows.late.reemit.max_lateness: 30000000d"),
        ("hopping: 1h", "5: windows.hopping: a mapping of size, every, offset, sampling is expected, found '1h'"),
        ("hopping: {size: 1h, every: 0}", "5: the advance of a hopping window is 0 µs"),
        ("hopping: {size: 1h, every: 2h}", "5: windows of 1h every 2h leave out the rows between them; write sampling"),
        ("hopping: {size: 1d, every: 1ms}", "5: a row is in 86,400,000 windows of 1d every 1ms; it may be in 10,000"),
        ("cumulate: {size: 1d, step: 7h}", "5: a cumulating window of 1d in steps of 7h: the size must be a multiple"),
        ("cumulate: {size: 1d, step: 0}", "5: the step of a cumulating window is 0 µs"),
        ("cumulate: {size: 10d, step: 1s}", "5: a row is in 864,000 windows of up to 10d in steps of 1s; it may be in"),
        ("session: 0", "5: the gap of a session is 0 µs; it must be 1 or more"),
        ("sliding: -1", "5: windows.sliding.size: duration -1 is outside [0, "),
        ("calendar: fortnight",
         "5: windows.calendar.unit: 'fortnight' is not valid; valid are day, week, month, quarter"),
        ("calendar: {unit: day, zone: America/New_Yrok}",
         "5: windows.calendar.zone: time zone 'America/New_Yrok' is not"),
        ("tumbling: {size: 1h, ofset: 3m}", "5: unknown field 'windows.tumbling.ofset'; did you mean 'offset'?"),
        ("tumblin: 1h", "5: unknown field 'windows.tumblin'; did you mean 'tumbling'?"),
        ("tumbling: 1h\n  calendar: day", "6: windows are tumbling and calendar; keep one kind"),
        ("where: delay > 0", "3: windows of no kind; write one of tumbling, hopping"),
        ("tumbling: 1h\n  grace: -1h", "6: windows.grace: duration '-1h' is negative"),
        ("tumbling: 1h\n  late: discrad", "6: windows.late: 'discrad' is not one of discard, next_window, {reemit: "),
        ("tumbling: 1h\n  late: {discard: {}, reemit: {}}", "6: write one policy: reemit, {reemit: {max_lateness: 3d}"),
        ("tumbling: 1h\n  late: {reemit: {max_lateness: }}",
         "6: windows.late.reemit.max_lateness: not a duration: None"),
        ("session: {gap: 1h, max_length: null}", "5: windows.session.max_length: not a duration: None"),
        ("tumbling: 1h\n  where:", "6: windows.where: an expression of Spark SQL is text, found None; write one, or "),
        ("tumbling: 1h\n  where: 'null'", "6: windows.where: 'null' is null for every row, so none counts; write a"),
        ("tumbling: 1h\n  where: at >", "6: windows.where: cannot be read: something is missing (at 'FROM')"),
        ("tumbling: 1h\n  where: at < now()", "6: windows.where: calls now, which depends on when it runs"),
        ("tumbling: 1h\n  where: a, b", "6: windows.where: 'a, b' is no single expression; write one"),
        ("tumbling: 1h\n  where: true FROM other --", "6: windows.where: "),
        ("tumbling: 1h\n  where: a in (SELECT b FROM other)", "6: windows.where: 'a in (SELECT b FROM other)' is not"),
        ("tumbling: 1h\n  by: [a, a]", "6: column a is named twice in by"),
        ("tumbling: 1h\n  by: [at]", "6: windows are on at and by at: remove it from by"),
        ("tumbling: 1h\n  by: [AT]", "6: windows are on at and by AT: remove it from by"),
        ("tumbling: 1h\n  by: [window_start]", "6: every window has a column window_start of its own"),
        ("tumbling: 1h\n  by: [Flights]", "7: windows have a column flights already; call the aggregate otherwise"),
        ("tumbling: 1h\n  by: [a, A]", "6: column A is named twice in by"),
        ("tumbling: 1h\n  by: [flights]", "7: windows have a column flights already; call the aggregate otherwise"),
    ],
)  # fmt: skip
def test_wrong_windows_are_one_line(tmp_path: Path, said: str, message: str) -> None:
    assert refusal(tmp_path, f"windows:\n  on: at\n  {said}\naggregates: {{flights: count}}\n").startswith(message)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("aggregates: {n: cuont}", "4: aggregates.n: there is no aggregate 'cuont'; did you mean 'count'?"),
        ("aggregates: {n: {summ: x}}", "4: unknown field 'aggregates.n.summ'; did you mean 'sum'?"),
        ("aggregates: {n: sum}", "4: aggregates.n: sum needs a column; write {sum: column}"),
        ("aggregates: {n: {count: }}", "4: aggregates.n.count: an expression of Spark SQL is text, found None; write"),
        ("aggregates: {n: {sum: x, where: }}", "4: aggregates.n.where: an expression of Spark SQL is text, found None"),
        ("aggregates: {n: {sum: x, where: (NULL)}}", "4: aggregates.n.where: '(NULL)' is null for every row, so none"),
        ("aggregates: {n: {sum: '*'}}", "4: aggregates: n is sum of nothing; write sum: a column"),
        ("aggregates: {n: {sum: x, max: y}}", "4: aggregates: n is sum and max; keep one of them"),
        ("aggregates: {n: {where: x > 1}}", "4: aggregates: n has no function; write one of count, sum,"),
        ("aggregates: {n: {approx_quantile: x}}", "4: aggregates: n: approx_quantile, and no other function, says at"),
        ("aggregates: {n: {approx_quantile: x, at: 2}}", "4: aggregates: n: at is 2.0; a quantile is from 0 to 1"),
        ("aggregates: {n: {sum: sum(x)}}", "4: aggregates.n: 'sum(x)' is not a value of one row: an aggregate adds up"),
        (
            "aggregates: {n: {sum: explode(x)}}",
            "4: aggregates.n: 'explode(x)' is not a value of one row: it makes several",
        ),
        ("aggregates:\n  n:\n    sum: x\n    where: rand() > 1", "7: aggregates.n.where: calls rand, which gives some"),
        ("aggregates: {window_end: count}", "4: windows have a column window_end already"),
        ("aggregates: {n: 3}", "4: aggregates.n: 3 is no aggregate"),
        ("history: 1d", "3: the windows have no aggregates; write aggregates: {rows: count}"),
        ("aggregates: {n: count}\nkey: [a]", "5: the key of windows is their by, window_start and window_end"),
        ("aggregates: {n: count}\nby: [a]", "5: by belongs to the windows; write windows: {by: [a]}"),
        ("aggregates: {n: count}\nvalid_from: a", "5: a window is there from when it closes; remove valid_from"),
        ("aggregates: {n: count}\nselect: SELECT 1", "3: a definition is a select, a python function or windows"),
        ("aggregates: {n: count}\ngrace: 1h", "5: grace: belongs into the windows; write windows: {grace: ...}"),
        ("aggregates: {n: count}\nstart: 2013-01-01", "5: start: the collection is derived (from: ...)"),
        ("aggregates: {n: count}\nversion: 1", "5: version and by belong to python definitions"),
    ],
)
def test_what_is_said_of_windows_and_beside_them_is_checked(tmp_path: Path, said: str, message: str) -> None:
    assert refusal(tmp_path, f"windows: {{on: at, tumbling: 1h}}\n{said}\n").startswith(message)


def test_windows_are_of_one_input_and_a_landed_collection_has_none(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    windows = "windows: {on: at, tumbling: 1h}\naggregates: {n: count}\n"
    path.write_text(f"name: x\nfrom: [flights, carriers]\n{windows}")
    with pytest.raises(InvalidUsage, match=r"x.yaml:2: windows are over one input, and from names 2"):
        parse(path)
    path.write_text(f"name: x\nkey: [id]\nsource: {{}}\n{windows}")
    with pytest.raises(InvalidUsage, match=r"x.yaml:4: windows: belongs to derived collections"):
        parse(path)
    path.write_text("name: x\nfrom: flights\naggregates: {n: count}\n")
    with pytest.raises(InvalidUsage, match=r"x.yaml:3: aggregates need windows"):
        parse(path)


@pytest.mark.parametrize(
    ("said", "late", "max_lateness"),
    [
        ("discard", Late.DISCARD, None),
        ("reemit", Late.REEMIT, None),
        ("{reemit: {max_lateness: 3d}}", Late.REEMIT, 72 * HOUR),
        ("next_window", Late.NEXT_WINDOW, None),
    ],
)
def test_what_late_rows_do(tmp_path: Path, said: str, late: Late, max_lateness: int | None) -> None:
    count = (Aggregate("n", Function.COUNT),)
    for kind, of in (("tumbling", Tumbling(HOUR)), ("sliding", Sliding(HOUR))):
        if (kind, late) == ("sliding", Late.NEXT_WINDOW):  # there is none
            continue
        found = parsed(tmp_path, f"windows:\n  on: at\n  {kind}: 1h\n  late: {said}\naggregates: {{n: count}}\n")
        assert found.windows == Windows((), "at", of, count, late=late, max_lateness=max_lateness)


@pytest.mark.parametrize(
    ("kind", "why"),
    [("sliding: 1h", "without rows there is no next window"), ("session: 1h", "without rows none is open")],
)
def test_data_driven_windows_have_no_next_one(tmp_path: Path, kind: str, why: str) -> None:
    message = refusal(tmp_path, f"windows:\n  on: at\n  {kind}\n  late: next_window\naggregates: {{n: count}}\n")
    assert message.startswith("6: late: next_window is not available for ")
    assert why in message
    assert message.endswith("write discard or reemit")


def test_a_column_may_be_called_as_a_truth_of_yaml(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\nfrom: a\nselect: SELECT * FROM a\ncolumns: {on: int, yes: string}\n")
    file = parse(path)
    assert sorted(file.declaration.columns) == ["on", "yes"]


def test_the_key_is_known_from_the_file_and_lists_are_json(tmp_path: Path) -> None:
    text = "windows: {by: origin, on: at, tumbling: 1h}\naggregates: {n: count, all: {collect: id}}\n"
    file = parse(written(tmp_path, text))
    assert isinstance(file, DerivedFile)
    assert file.key == ("origin", "window_start", "window_end")
    types = [ColumnType.STRING, ColumnType.TIMESTAMP, ColumnType.TIMESTAMP, ColumnType.INT, ColumnType.STRING]
    columns = [Column(name, of) for name, of in zip((*file.key, "n", "all"), types, strict=True)]
    built = file.collection(columns)
    assert [(column.name, column.type) for column in built.value] == [("n", ColumnType.INT), ("all", ColumnType.JSON)]


def test_what_does_not_fit_the_input_is_reported_at_its_line(tmp_path: Path) -> None:
    file = parse(written(tmp_path, "windows:\n  on: at\n  tumbling: 1h\naggregates:\n  n: count\n  m: {sum: x}\n"))
    assert isinstance(file, DerivedFile)
    for message, line in (("windows.on: flights has no column at", 4), ("aggregates.m: sum takes numbers", 8)):
        assert str(file.refusal_of_definition(message)).endswith(f"by_hour.yaml:{line}: {message}")
    assert ":3: no such table: at all" in str(file.refusal_of_definition("no such table: at all"))

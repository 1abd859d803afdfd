"""Days that are run again from a shell: what changed is reported in a line, and what cannot be is refused in one."""

from __future__ import annotations

import pytest

from tests.cli.conftest import EVENTS, Shell


@pytest.fixture
def corrected(shell: Shell) -> Shell:
    """Two days of two files, in the trace, of a collection whose last day may be run again."""
    shell.ok("init", shell.declared(EVENTS + "reprocess_for: 1d\n"))
    for day in (1, 2):
        shell.events(day, "a,1,10:00", f"b,{day},11:00")
        shell.land(f"events/2024-01-{day:02d}/b.csv", f"id,amount,at\nc,{day},2024-01-{day:02d}T12:00:00Z\n")
    shell.moved("events", "2024-01-01", "2024-01-02")
    return shell


def test_a_corrected_day_says_what_differs(corrected: Shell) -> None:
    corrected.events(2, "a,1,10:00", "b,9,11:00", "d,4,13:00")
    said = corrected.ok("ingest", "events", "--date", "2024-01-02").out
    assert "1 file corrected, 1 row retracted and 2 added, happened" in said
    assert "1 file corrected, 1 row retracted and 2 added" in corrected.ok("log", "events").out
    assert "nothing to do" in corrected.ok("ingest", "events", "--date", "2024-01-02").out
    corrected.moved("events")
    current = [(row["id"], row["amount"]) for row in corrected.json("as-of", "events")["rows"]]
    assert current == [("a", 1), ("b", 1), ("b", 9), ("c", 1), ("c", 2), ("d", 4)]
    status = corrected.json("status", "events")
    assert (status["correctable_from_text"], type(status["reprocess_bytes"])) == ("2024-01-02T00:00:00Z", int)
    line = "intervals that begin at 2024-01-02T00:00:00Z or later; "
    assert line in corrected.ok("status", "events").out


def test_files_that_are_gone_count_on_unless_they_are_said_to_be_removed(corrected: Shell) -> None:
    day = ("ingest", "events", "--date", "2024-01-02")
    (corrected.landing / "events/2024-01-02/b.csv").unlink()
    assert "nothing to do" in corrected.ok(*day).out
    assert "say --removed, too" in corrected.refused(*day, "--yes")
    assert "1 file corrected, 1 row retracted and 0 added" in corrected.ok(*day, "--removed").out
    (corrected.landing / "events/2024-01-02/a.csv").unlink()
    assert "a landing may just have expired; say --yes too" in corrected.refused(*day, "--removed")
    assert "1 file corrected, 2 rows retracted and 0 added" in corrected.ok(*day, "--removed", "--yes").out


def test_a_day_too_far_back_is_refused_with_from_when_on_and_what_to_do(corrected: Shell) -> None:
    corrected.events(1, "a,7,10:00")
    said = corrected.refused("ingest", "events", "--date", "2024-01-01")
    assert "a.csv changed after it was ingested: was " in said
    assert "reprocess_for 1d lets intervals be corrected that begin at 2024-01-02T00:00:00Z or later" in said
    assert said.endswith("put the correction in a new file")
    (corrected.landing / "events/2024-01-01/a.csv").unlink()
    said = corrected.refused("ingest", "events", "--date", "2024-01-01", "--removed")
    assert "a.csv is gone, and what it said cannot be retracted; reprocess_for 1d" in said

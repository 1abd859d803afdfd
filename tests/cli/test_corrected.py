"""A day run again in a shell: what changed is said in words; `status` says since when it can be, and at what cost."""

from __future__ import annotations

from tests.cli.conftest import EVENTS, Shell

CORRECTED = EVENTS + "reprocess_for: 30d\n"


def test_ingest_and_log_say_what_changed_and_that_nothing_did(shell: Shell) -> None:
    name = shell.json("init", shell.declared(CORRECTED))["collection"]
    shell.events(1, "a,1,10:00", "b,2,11:00")
    shell.moved(name, "2024-01-01")
    again = ("ingest", name, "--date", "2024-01-01")
    assert (
        "nothing to do [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z): nothing changed, version" in shell.ok(*again).out
    )
    assert shell.json(*again)["results"][0]["changed"] == "nothing changed"

    shell.events(1, "a,1,10:00", "b,3,11:00", "c,4,12:30")
    words = "1 file corrected, 1 row retracted and 2 added, happened 2024-01-01T11:00:00Z to 2024-01-01T12:30:00Z"
    (result,) = shell.json(*again)["results"]
    assert (result["corrected"], result["retracted"], result["added"], result["changed"]) == (1, 1, 2, words)
    said = [entry["change"] for entry in shell.json("log", name)["versions"]]
    assert f"ingested [2024-01-01T00:00:00Z, 2024-01-02T00:00:00Z) again as {result['batch'][:12]}: {words}" in said
    shell.moved(name, "2024-01-01")
    rows = shell.json("as-of", name)["rows"]
    assert sorted((row["id"], row["amount"]) for row in rows) == [("a", 1), ("b", 3), ("c", 4)]

    status = shell.json("status", name)
    assert (status["correctable_from_text"], type(status["reprocess_bytes"])) == ("2024-01-01T00:00:00Z", int)
    line = "intervals that begin at 2024-01-01T00:00:00Z or later; "
    assert line in shell.ok("status", name).out


def test_where_nothing_may_be_corrected_status_says_nothing_of_it(events: Shell) -> None:
    status = events.json("status", "events")
    assert (status["correctable_from"], status["reprocess_bytes"]) == (None, None)
    assert "correctable" not in events.ok("status", "events").out

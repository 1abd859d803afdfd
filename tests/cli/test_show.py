"""`show`: what a collection is, on one screen; and `export`."""

from __future__ import annotations

from tests.cli.conftest import Shell

SECRET = """\
name: people
key: [id]
value: [name]
columns: {id: int, name: {type: string, masked: true}, at: timestamp}
start: 2024-01-01
time: {column: at}
source: {path: "{{ landing }}/people/{{ ds }}/*.csv", format: csv, envelope: append}
"""


def test_a_collection_on_one_screen(events: Shell) -> None:
    events.events(1, *(f"id{at:02},{at},08:00" for at in range(30)))
    events.moved("events", "2024-01-01")
    said = events.ok("show", "events").out
    for message in (
        "events, version",
        "string  key",
        "csv, envelope append",
        "complete below",
        "no row on time is missing",
    ):
        assert message in said or message.replace("  ", " ") in " ".join(said.split())
    assert "id09" in said
    assert "id10" not in said
    assert "`tidemark as-of events` has all" in said
    document = events.json("show", "events", "--rows", "2")
    assert [row["id"] for row in document["rows"]] == ["id00", "id01"]
    assert document["columns"][0] == {"name": "id", "type": "string", "of": "key", "marks": ""}
    assert document["complete_below_text"] == "2024-01-02T00:00:00Z"


def test_a_collection_of_which_nothing_is_sealed_has_no_rows(events: Shell) -> None:
    assert events.json("show", "events")["rows"] == []
    assert "existing: events" in events.refused("show", "event")


def test_masked_values_are_not_shown(shell: Shell) -> None:
    shell.ok("init", shell.declared(SECRET))
    shell.land("people/2024-01-01/a.csv", "id,name,at\n1,Ada,2024-01-01T08:00Z\n")
    shell.moved("people", "2024-01-01")
    said = shell.ok("show", "people").out
    assert "Ada" not in said
    assert "masked" in said


def test_an_export_says_what_it_wrote(events: Shell) -> None:
    events.events(1, "a,1,08:00", "b,5,09:00")
    events.moved("events", "2024-01-01")
    out = events.files / "out.csv"
    assert "2 rows of events at version" in events.ok("export", "events", "--to", str(out)).out
    assert out.read_text() == "id,amount\na,1\nb,5\n"
    assert "is there; say replace" in events.refused("export", "events", "--to", str(out))
    folder = events.files / "parts"
    words = ("export", "events", "--to", str(folder), "--format", "jsonl", "--partition-by", "id")
    assert events.json(*words, "--where", "amount > 1", "--column", "amount", "--column", "id")["files"] == 1
    assert (folder / "id=b" / "rows.jsonl").read_text() == '{"amount": 5}\n'
    assert "say replace" in events.refused(*words)
    again = events.json(*words, "--replace")
    assert (again["files"], again["no_declaration"]) == (2, "the key, id, is in the names of its folders alone")
    (folder / "notes.txt").touch()
    assert "notes.txt is there, which no export wrote" in events.refused(*words, "--replace")
    assert f"{events.root} is not replaced, as it has no _tidemark_export" in events.refused(
        *words[:3], str(events.root), *words[4:], "--replace"
    )
    assert "its ending says no format" in events.refused("export", "events", "--to", str(events.files / "x"))


def test_an_export_prints_the_file_that_reads_it_back(events: Shell) -> None:
    events.events(1, "a,1,08:00", "b,5,09:00")
    events.moved("events", "2024-01-01")
    words = ("export", "events", "--to", str(events.files / "out.csv"))
    text, declaration = events.ok(*words).out, events.json(*words, "--replace")["declaration"]
    assert text.endswith(f"\n\n{declaration}")
    (events.files / "events_export.yaml").write_text(declaration)
    events.ok("init", str(events.files / "events_export.yaml"))
    events.ok("advance", "events_export", "--to", "2024-01-02")
    answers = [events.ok("as-of", name, "--format", "csv").out for name in ("events", "events_export")]
    assert answers[0] == answers[1]
    assert events.json("status", "events_export")["complete_below_text"] == "2024-01-02T00:00:00Z"
    refusal = "no file reads it back: column id of the key is not in it"
    assert refusal in events.ok(*words, "--column", "amount", "--replace").out

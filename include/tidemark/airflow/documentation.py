"""What a person finds in the Airflow UI beside a collection's DAG and its tasks."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.jobs.steps.step import Step
from tidemark.model.collection import Collection, Column, Gate, Landed
from tidemark.model.instant import MAX_TIME, format_duration, format_instant
from tidemark.quality.gates import GATES

SAFE = "Safe to run again, any time: it is idempotent, and does only what is left to do."

PUBLISHED = (
    "Emits one event of the collection's asset for what was newly sealed, `[lower, upper)` in its "
    "`extra`; skipped where that is nothing. Fails where the run's interval is not complete, as an earlier one is "
    "missing that no queued or running run is about to ingest: backfill that, then clear this task."
)


def step_doc(step: Step) -> str:
    """What a step's task in a run does."""
    return f"{step.docs} {SAFE}"


_OPEN = "**Data docs** shows what this run found. If it fails, the failing rows too, and nothing behind it runs."


def gate_doc(gate: Gate) -> str:
    """What a gate's task checks, and what to do when it fails."""
    judgement = GATES[gate]
    return " ".join(filter(None, (judgement.checks, _OPEN, judgement.mend)))


_FRONTIERS = (
    "Frontiers: complete below **complete_below**, known up to **seal**, in the trace below **trace_upper**, readable "
    "from **since** on. "
    "Where they stand: *Tidemark* in the navigation."
)

_WAYS_OUT = """\
### When a gate fails

Nothing was published, and nothing is lost. The task's log and its **Data docs** button show the failing rows.

1. `tidemark quarantine {name} BATCH` takes the batch out and frees its file (`tidemark status {name}` lists batches).
2. Mend the file in the landing (or decide that the data is right: change `quality` in the collection file).
3. *Clear* the failed run here, from `ingest` on. `tidemark release {name} BATCH` undoes a quarantine.

### Running it

- Any run can be cleared or run again, any time: every step is idempotent. A finished day is a no-op, unless its files
  changed: where `reprocess_for` is declared, what they say otherwise now is written, and `ingest` says in words what.
- Backfill a range of dates with *Trigger > Backfill*; days may come in any order, completeness waits for the missing
  one. Each run has its own interval: leave `lower` and `upper` empty.
- *Trigger > Single run* takes `lower` and `upper` for any number of whole intervals, each read on its own. Without them
  it is the interval that begins at the logical date, or else the last one that was over by then.
- A run that ends before its interval is complete is not green: `published` says what is missing.
"""


def collection_doc(collection: Collection) -> str:
    """The Markdown page of a collection's DAG: its columns, its frontiers, what to do when something fails."""
    landed, source = collection.landed, collection.landed.source
    facts = [
        ("source", f"`{source.path}` ({source.format}, envelope `{source.envelope}`)"),
        ("runs", f"`{landed.schedule}` from {format_instant(landed.start)} to {_end(landed)}"),
        ("time", f"`{landed.time}`" if landed.time else "arrival"),
        ("event time", f"`{landed.event_time}`" if landed.event_time else "none"),
        ("late rows", _late(landed)),
        ("retention", str(collection.retention)),
        ("corrections", _corrections(landed)),
        ("asset", f"`tidemark://{collection.name}`"),
    ]
    columns = [*_rows("key", collection.key), *_rows("value", collection.value)]
    return "\n".join(
        (
            f"# {collection.name}",
            "",
            *_table(("", ""), facts),
            "",
            *_table(("column", "type", "of the"), columns),
            "",
            _FRONTIERS,
            "",
            _WAYS_OUT.format(name=collection.name),
        )
    )


def _rows(of: str, columns: Iterable[Column]) -> Iterable[tuple[str, str, str]]:
    return ((f"`{column.name}`", str(column.type), of) for column in columns)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [header, tuple("---" for _ in header), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def _end(landed: Landed) -> str:
    return "no end" if landed.end is None else f"{format_instant(landed.end)} (exclusive)"


def _corrections(landed: Landed) -> str:
    if not landed.reprocess_for:
        return "none: a file that changed after it was read is refused"
    return f"of intervals up to {format_duration(landed.reprocess_for)} old, by running them again (`reprocess_for`)"


def _late(landed: Landed) -> str:
    if landed.late.policy == "discard":
        return "kept as dead letters, not applied (`discard`)"
    if landed.late.policy == "next_window":
        return "applied as if they had happened at the seal (`next_window`)"
    reach = landed.late.reach
    limit = "however late" if reach == MAX_TIME else f"up to {reach / 3_600_000_000:g} h below what is complete"
    return f"applied as corrections, {limit} (`reemit`)"

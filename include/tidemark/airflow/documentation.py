"""What a person finds in the Airflow UI beside a collection's DAG and its tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidemark.config.schedule import Schedule
from tidemark.definition.windows.explained import explained_windows
from tidemark.jobs.steps.step import Step
from tidemark.model.collection import Collection, Column, Covers, Gate, Landed
from tidemark.model.derived import Derived
from tidemark.model.instant import MAX_TIME, format_duration
from tidemark.model.local_time import format_local
from tidemark.model.window.aggregate import Aggregate
from tidemark.quality.gates import GATES

if TYPE_CHECKING:
    from tidemark.config.derived_file import DerivedFile

SAFE = "Safe to run again, any time: it is idempotent, and does only what is left to do."

PUBLISHED_OF_DERIVED = (
    "Emits one event of the collection's asset for what was newly corrected, sealed and drained, `[lower, upper)` in "
    "its `extra`; skipped where that is nothing. What reads this collection runs then, too."
)
PUBLISHED = (
    "Emits one event of the collection's asset for what was newly sealed, `[lower, upper)` in its "
    "`extra`; skipped where that is nothing. Fails where the run's interval is not complete, as an earlier one is "
    "missing that no queued or running run is about to ingest: backfill that, then clear this task."
)


def step_doc(step: Step) -> str:
    """What a step's task in a run does."""
    return f"{step.docs} {SAFE}"


_OPEN = (
    "**Data docs**, on the task instance's tab *Details*, shows what this run found. If it fails, the failing rows "
    "too, and nothing behind it runs."
)
_ASKS = (
    "Where data do not pass, it asks on its tab *Required Actions* whether to accept them for a reason, to take them "
    "out, or to read a mended file, and waits without a worker for the answer (`TIDEMARK_RESPONSE_TIMEOUT`, 1d)."
)


def gate_doc(gate: Gate) -> str:
    """What a gate's task checks, and what to do when it fails."""
    judgement = GATES[gate]
    asks = _ASKS if gate.covers is Covers.UNSEALED else ""
    return " ".join(filter(None, (judgement.checks, _OPEN, asks, judgement.mend)))


_FRONTIERS = (
    "Frontiers: complete below **complete_below**, known up to **seal**, in the trace below **trace_upper**, readable "
    "from **since** on. "
    "Their current values: *Tidemark* in the navigation."
)

_WAYS_OUT = """\
### When a gate asks or fails

Where data do not pass, `gate_unsealed` asks what to do on its tab *Required Actions*, without a worker. Nothing was
published, and nothing is lost. The task's log shows the failing rows, and so does **Data docs** on its tab *Details*.
Later runs are green: they ingest, and wait for this one behind their `seal`. If it is red, as nobody answered:

1. `tidemark quarantine {name} BATCH` takes the batch out and frees its file (`tidemark status {name}` lists batches).
2. Mend the file in the landing (or decide that the data is right: change `quality` in the collection file).
3. *Clear* the failed run here, from `ingest` on. It seals all days that wait. `tidemark release {name} BATCH`
   undoes a quarantine.

### Running it

- Any run can be cleared or run again, any time: every step is idempotent. A finished day is a no-op, unless its files
  changed: where `reprocess_for` is declared, what they say otherwise now is written, and `ingest` says in words what.
- Backfill a range of dates with *Trigger > Backfill*: in runs of several intervals each, and a bad one stops no other.
  Intervals may come in any order, completeness waits for the missing one. Leave `lower` and `upper` empty.
- *Trigger > Single run* takes `lower` and `upper` for any number of whole intervals, each read on its own. Without them
  it is the interval that begins at the logical date, or else the last one that was over by then.
- A run that ends before its interval is complete is not green: `published` says what is missing.
"""


def collection_doc(collection: Collection) -> str:
    """The Markdown page of a collection's DAG: its columns, its frontiers, what to do when something fails."""
    columns = [*_rows("key", collection.key), *_rows("value", collection.value)]
    return "\n".join(
        (
            f"# {collection.name}",
            "",
            *_table(("", ""), facts_of(collection)),
            "",
            *_table(("column", "type", "of the"), columns),
            "",
            _FRONTIERS,
            "",
            _WAYS_OUT.format(name=collection.name),
        )
    )


def facts_of(collection: Collection) -> list[tuple[str, str]]:
    """Where the rows of a landed collection come from and how they are kept; names and code between backticks."""
    landed, source = collection.landed, collection.landed.source
    return [
        ("source", f"`{source.path}` ({source.format}, envelope `{source.envelope}`)"),
        ("runs", f"`{Schedule.of(landed)}` from {format_local(landed.start, landed.timezone)} to {_end(landed)}"),
        ("time", f"`{landed.time}`" if landed.time else "arrival"),
        ("event time", f"`{landed.event_time}`" if landed.event_time else "none"),
        ("late rows", _late(landed)),
        ("retention", str(collection.retention)),
        ("batches", _batches(collection)),
        ("corrections", _corrections(landed)),
        ("asset", f"`tidemark://{collection.name}`"),
    ]


_WAYS_OUT_OF_DERIVED = """\
### When a gate asks or fails

Where rows do not pass, `gate_unsealed` asks what to do on its tab *Required Actions*, without a worker. Nothing was
published, and nothing is lost. The task's log shows the failing rows, and so does **Data docs** on its tab *Details*.
If it is red, as nobody answered:

1. `tidemark quarantine {name} BATCH` takes the youngest batch out; the inputs are consumed again from before it
   (`tidemark status {name}` lists batches).
2. Mend the definition or the input that is wrong (or decide that the rows are right: change `quality` in the file).
3. *Clear* the failed run here, from `correct` on.

### Running it

- It runs by itself whenever one of its inputs has more, and also when a corrected day of one changes what was known.
- Any run can be cleared or run again, any time: every step is idempotent. Where nothing is new it is a no-op, and
  `published` is skipped, saying so.
- `correct` is skipped where the inputs are not equally far; its log names the one that lags. That one's next run
  starts this DAG again.
- Backfill a range of dates with *Trigger > Backfill*: each run corrects the collection until the end of its day. Of
  days that it has passed there is nothing to do, and the run says so.
- *Trigger > Single run* takes `until`; `whole` recomputes everything, `check` repairs what anything else wrote.
"""


def derived_doc(name: str, derived: Derived, declared: Collection | DerivedFile) -> str:
    """The Markdown page of a derived collection's DAG: its inputs, its definition, what to do when something fails."""
    select = derived.definition.select
    query = ["", "```sql", select, "```"] if select else []
    page = (f"# {name}", "", *_table(("", ""), facts_of_derived(name, derived, declared)), *query, "", _FRONTIERS, "")
    return "\n".join((*page, _WAYS_OUT_OF_DERIVED.format(name=name)))


def facts_of_derived(name: str, derived: Derived, declared: Collection | DerivedFile) -> list[tuple[str, str]]:
    """What a derived collection is computed from and how, but for the text of a query; code between backticks."""
    definition = derived.definition
    keyed = [column.name for column in declared.key] if isinstance(declared, Collection) else declared.key or ()
    facts = [
        ("computed from", ", ".join(f"`{input}`" for input in derived.inputs)),
        ("runs", "when one of these has more"),
        ("key", ", ".join(f"`{column}`" for column in keyed) or "inferred from the definition"),
        ("refresh", f"`{derived.refresh}`; `tidemark explain {name}` says which mode that is, and why"),
        ("first build", f"a frontier each {format_duration(derived.history)}" if derived.history else "one frontier"),
        ("history kept of inputs", format_duration(derived.max_lag) if derived.max_lag else "as long as it exists"),
        ("asset", f"`tidemark://{name}`"),
    ]
    if definition.function:
        facts.insert(1, ("definition", f"`{definition.function}`, version `{definition.version}`"))
    if definition.windows is not None:
        facts[1:1] = [
            ("windows" if not at else "", line) for at, line in enumerate(explained_windows(definition.windows))
        ]
        facts += [(f"`{one.name}`", _aggregate(one)) for one in definition.windows.aggregates]
    return facts


def _aggregate(one: Aggregate) -> str:
    of = f" of `{one.of}`" if one.of else " of rows"
    at = f" at {one.at}" if one.at is not None else ""
    return f"{one.function}{of}{at}{f' where `{one.where}`' if one.where else ''}"


def _rows(of: str, columns: Iterable[Column]) -> Iterable[tuple[str, str, str]]:
    return ((f"`{column.name}`", str(column.type), of) for column in columns)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [header, tuple("---" for _ in header), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def _end(landed: Landed) -> str:
    return "no end" if landed.end is None else f"{format_local(landed.end, landed.timezone)} (exclusive)"


_BATCHES = """\
# {name}.batches

Ingests what has landed of **{name}** before its interval is over: {rules}. Files younger than {settle} are left for
the next batch, as they may be half written.

A run is started by the triggerer, which looks at the landing and starts none while nothing comes; *Trigger* cuts a
batch at once. Why each was cut is in the log of `ingest`, in `tidemark log {name}` and on the *Tidemark* page.

The interval is not over by that: the DAG **{name}** reads the rest of it at its end, and seals. It waits for no run of
this DAG, and it does not matter to what it holds whether there were any. A run that failed may be cleared, or left.
"""


def batches_doc(collection: Collection) -> str:
    """The Markdown page of the DAG that ingests a collection's files by load."""
    batching = collection.landed.batching
    settle = format_duration(batching.settle) if batching else ""
    return _BATCHES.format(name=collection.name, rules=batching, settle=settle)


def _batches(collection: Collection) -> str:
    batching = collection.landed.batching
    if batching is None:
        return "none: an interval is read once, at its end"
    return f"also {batching}, by the DAG `{collection.name}.batches`"


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

"""The steps. Each is declared here and nowhere else: its app, its command, its operator and what people read of it
follow. docs/how-to/add-a-step.md goes through one."""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.step import Argument, Intervals, Step, When
from tidemark.model.batching.reason import Cut
from tidemark.model.collection import Gate
from tidemark.model.instant import parse_duration, parse_instant
from tidemark.model.publication import TableFormat

LANDING = Argument(
    "landing",
    "Where delta files land: a path or s3://bucket/prefix.",
    metavar="FOLDER",
    required=True,
    environ="TIDEMARK_LANDING",
    parameter="landing_root",
)
"""A step that takes it reads files that land, and is deferred until they have."""


def _names(text: str) -> tuple[str, ...]:
    """The names of a list. InvalidUsage for one that has none."""
    names = tuple(name for part in text.split(",") if (name := part.strip()))
    if not names:
        raise InvalidUsage(f"{text!r} names no column")
    return names


COLUMNS = Argument(
    "columns",
    "Read files of intervals that were read before again, for these columns (commas between them).",
    parse=_names,
    metavar="NAMES",
)
"""Columns that were declared after the files of an interval were read."""

_STEPS = (
    Step(
        "ingest",
        job="tidemark.jobs.steps.ingest:ingest",
        intervals=Intervals.EACH,
        help="""Read the delta files of data intervals. Each file is ingested once, however often this is run.

    Where reprocess_for is declared, a file that changed is read again, and only the differences are written.

    Example: tidemark ingest flights --from 2013-01-01 --to 2013-01-07
    """,
        docs="Reads the interval's delta files into one unsealed batch, each file once; where `reprocess_for` is "
        "declared, also the differences of files that changed since. While they have not landed it "
        "is deferred and takes no worker, until `TIDEMARK_READY_WITHIN` (12h) after the interval's end.",
        arguments=(
            LANDING,
            Argument(
                "removed",
                "Retract the rows of ingested files that have been deleted from the landing folder.",
                flag=True,
            ),
            Argument(
                "replaced",
                "Let new files take the place of ingested ones that are gone: the difference is written.",
                flag=True,
            ),
            Argument("added", "Count new files beside ingested ones that are gone, whose rows stay.", flag=True),
            Argument("yes", "Confirm --removed even if it retracts every file of the interval.", flag=True),
            Argument(
                "as_landed",
                "Take what matches now: no marker is waited for, files beside it count for none.",
                flag=True,
            ),
            Argument("not_over", "Take what has landed of an interval that is not over for all of it.", flag=True),
            COLUMNS,
            Argument(
                "cut",
                "Ingest what has landed of an open interval, for this reason (`explicit`); the rest comes at its end.",
                parse=Cut.parse,
                metavar="WHY",
            ),
        ),
        gate=Gate.UNSEALED,
        when=When.EACH_RUN,
        kernels=("ingest", "reread"),
        declares=True,
        origin="landed",
    ),
    Step(
        "correct",
        job="tidemark.jobs.steps.correct:correct",
        intervals=Intervals.UNUSED,
        help="""Bring a derived collection up to date with its inputs, as far as these are complete.

    Only differences are written, computed from the changes where that is exact (`tidemark explain` says how, and why).
    A run without new input starts no Spark, nor does one that can compute its few changes in its own process.

    Example: tidemark correct delays_by_carrier
    """,
        docs="Brings the collection up to date with its inputs: computes the differences and writes them as one "
        "unsealed batch. While its inputs are not equally complete it waits: it is skipped, and names what lags.",
        arguments=(
            Argument(
                "until", "Stop at this time, even if the inputs are further.", parse=parse_instant, metavar="TIME"
            ),
            Argument("whole", "Recompute everything, whatever changed.", flag=True),
            Argument("check", "Recompute everything, and repair what anything else wrote or lost.", flag=True),
        ),
        gate=Gate.UNSEALED,
        when=When.EACH_RUN,
        on_spark=True,
        declares=True,
        origin="derived",
    ),
    Step(
        "gate",
        job="tidemark.jobs.steps.gate:gate",
        intervals=Intervals.CHOICE,
        help="""Check what a gate has not certified yet: unsealed, frontier, trace or compaction.

    Without an interval all unsealed batches are checked, else those of the named intervals. --accept certifies batches
    although expectations of the collection fail, for a reason that is kept for ever; damage is never accepted.

    Example: tidemark gate flights unsealed --accept 42bba77bef60 --reason "strike on that day" --by ada
    """,
        docs="Certifies what no certificate of the current suite covers, or fails and shows why, row by row.",
        arguments=(
            Argument("gate", "unsealed, frontier, trace or compaction.", parse=Gate, metavar="GATE", required=True),
            Argument(
                "accept",
                "Certify these batches although expectations of the collection fail (ids, commas between them).",
                metavar="BATCH",
            ),
            Argument("reason", "Why they are accepted; kept with the certificate.", metavar="TEXT"),
            Argument("by", "Who accepts them.", metavar="NAME", environ="USER"),
            Argument("judged_by", "Only if the suite of rules is still this one.", metavar="SUITE"),
        ),
        when=When.BEHIND,
        kernels=("inspect", "not_contributed", "retracted_share"),
        imports=("tidemark.quality.warm",),
    ),
    Step(
        "seal",
        job="tidemark.jobs.steps.seal:seal",
        intervals=Intervals.SEVERAL,
        help="Promise that the collection is complete below the interval's end (without one, as far as all was "
        "ingested), and that what was learned is final.",
        docs="Promises that the collection is complete below the interval's end (less the grace), and that what was "
        "learned is final: late rows can be read from here on. Where an earlier interval is missing completeness "
        "waits, and the run that ingests it passes the waiting ones too. Where a batch of another run did not pass its "
        "gate all behind this task is skipped, and the run that mends it passes the waiting ones.",
        gate=Gate.FRONTIER,
        when=When.EACH_RUN,
    ),
    Step(
        "drain",
        job="tidemark.jobs.steps.drain:drain",
        intervals=Intervals.NAMES_RUN,
        help="Move all that is sealed into the trace. The interval only names the run.",
        docs="Moves what is sealed into the trace.",
        gate=Gate.TRACE,
        when=When.EACH_RUN,
        kernels=("merge", "resolve", "difference", "trim"),
    ),
    Step(
        "compact",
        job="tidemark.jobs.steps.compact:compact",
        intervals=Intervals.NAMES_RUN,
        help="Move `since` by the retention, then run every compaction that is due. The interval only names the run.",
        docs="Moves `since` by the retention as far as holds allow, and merges neighbouring trace batches where there "
        "are more than the budget, and batches of remembered facts; sorts updates that are not due yet by due time.",
        gate=Gate.COMPACTION,
        when=When.EACH_RUN,
        kernels=("merge", "remember", "trim"),
    ),
    Step(
        "replay",
        job="tidemark.jobs.steps.replay:replay",
        intervals=Intervals.CHOICE,
        help="""Apply dead letters, the late rows that were discarded. Each is applied once, however often this is run.

    They form a batch of their own, learned at the seal and gated like any other.

    Example: tidemark late replay flights --from 2013-01-01 --to 2013-01-07
    """,
        docs="Applies dead letters after all, each once: as a batch of their own, learned at the seal.",
        arguments=(
            Argument("path", "Only rows of files whose path contains this.", shell_option="--file"),
            Argument("batch", "Only rows of this batch, or of what it replayed.", metavar="BATCH"),
            Argument("as_now", "Apply rows that are too old as if they had happened at the seal.", flag=True),
        ),
        kernels=("replay",),
        origin="landed",
    ),
    Step(
        "collect",
        job="tidemark.jobs.steps.collect:collected",
        intervals=Intervals.NONE,
        help="""Remove objects that no kept version names. A plan lists them; a later run removes them after a grace.

    Superseded versions go an hour after they were listed, objects a day. Example: tidemark collect flights --dry-run
    """,
        docs="Removes superseded versions, replaced batches and leftovers of killed attempts. Lists them in a plan "
        "first (`collect/<n>.json` in the collection's folder); a later run removes what has been listed for an hour "
        "(versions) or a day (objects) and is still named by nothing. Needs no Spark. Safe to run again, any time, "
        "also beside steps, readers and other collectors.",
        arguments=(
            Argument(
                "keep_versions",
                "How long a superseded version can still be read, as 7d or 12h.",
                parse=parse_duration,
                metavar="DURATION",
                default="7d",
                environ="TIDEMARK_KEEP_VERSIONS",
                parameter="keep",
            ),
        ),
        when=When.MAINTENANCE,
    ),
    Step(
        "publish",
        job="tidemark.jobs.steps.publish:publish",
        intervals=Intervals.NONE,
        help="""Bring the tables that the collection's file names under `publish` up to what is drained.

    Rows that they contain already are not written again, however often this is run. Example: tidemark publish flights
    """,
        docs="Brings the tables that the collection's file names under `publish` up to what is drained: files are "
        "named where they are the table's rows as they are, else rows are copied. Needs no Spark. Safe to run again, "
        "any time. A table that others have changed is not overwritten: `tidemark publish COLLECTION --again` writes "
        "it whole.",
        arguments=(
            Argument("again", "Write the tables whole, even if others have changed or dropped them.", flag=True),
        ),
    ),
    Step(
        "unpublish",
        job="tidemark.jobs.steps.publish:unpublish",
        intervals=Intervals.NONE,
        help="""End a publication, so that files which only its table names can be removed.

    A table that names files of the collection is removed from its catalog. Any other table stays as it is.

    Example: tidemark unpublish flights --format iceberg
    """,
        docs="Ends publications, so that the collector may remove files that only their tables name. A table that "
        "names files of the collection is taken out of its catalog before. Any other stays, on its own.",
        arguments=(
            Argument("format", "Only the one in this format: iceberg or delta.", parse=TableFormat, metavar="FORMAT"),
            Argument("leave", "Leave the table, although files that it names may be removed.", flag=True),
        ),
    ),
    Step(
        "audit",
        job="tidemark.jobs.queries.verify:audit",
        intervals=Intervals.NONE,
        help="Check every object and every row of every part against what was recorded, and recent gates' verdicts.",
        docs="Reads every row of every part and every object of late rows, asks Great Expectations again about what "
        "gates judged in the last two days, and fails if anything is not what was recorded; the log names each object, "
        "batch and rule at fault. Nothing is changed: `tidemark verify COLLECTION "
        "--data` in a shell says the same. Where an object is lost or damaged, restore it from a copy of the store.",
        when=When.MAINTENANCE,
        kernels=("audit", "checksum"),
    ),
)

STEPS: dict[str, Step] = {step.name: step for step in _STEPS}
"""The steps by name, in the order in which a run goes through those of each run."""


def step_of(name: str) -> Step:
    """The step called `name`; InvalidUsage, naming all, if there is none."""
    if name not in STEPS:
        raise InvalidUsage(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    return STEPS[name]


def steps_of(when: When, *, derived: bool = False) -> list[Step]:
    """The steps that Airflow runs then, in their order, of a collection that lands, or of a derived one."""
    other = "landed" if derived else "derived"
    return [step for step in STEPS.values() if step.when is when and step.origin != other]

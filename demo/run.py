"""The demo: a week of real flights through a real Airflow scheduler, every printed figure checked.

    make demo            leaves Airflow running, with its address and login
    make demo CI=1       stops it at the end

It lays out the change files of the days up to 2013-01-07, brings the local Airflow up, creates a backfill of the DAG
`flights` for them and waits, showing each task; then it reads the collection and holds every figure against a
calculation straight from the CSV (demo/independent.py, which shares no code with Tidemark), and every row of what is
computed from it, windows among them (demo/independent_windows.py). Then a file of an early day is mended and its run
cleared, and every row that changes, and every figure before and after, is compared with the same calculation. Exit
code 1 if any differs. It ends with the seconds of each part, those that `make` spent on set-up first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME)]

import tidemark  # noqa: E402
from demo import answers, derived, independent, layout  # noqa: E402
from demo.airflow_api import AirflowApi  # noqa: E402
from tidemark.jobs.queries.status import FRONTIERS  # noqa: E402
from tidemark.model.instant import format_instant  # noqa: E402
from tidemark.model.wording import counted  # noqa: E402

COLLECTION = "flights"
START, FIRST, LAST = date(2012, 12, 31), date(2013, 1, 1), date(2013, 1, 7)
WRONG_DAY = layout.MENDED_DAY
RUN_LIMIT_SECONDS = 3600
MARKS = {"success": "[green]●[/]", "running": "[yellow]◐[/]", "failed": "[red]✗[/]", "up_for_retry": "[red]↻[/]"}
TASKS = "ingest gate seal gate drain gate compact gate publish"

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def main() -> int:
    os.environ.setdefault("TIDEMARK_SPARK_WHEN", "always")  # little or not, Spark is seen at work
    parts = Parts()
    parts.took["set-up"] = seconds_of_setup()
    with parts.timed("landing", f"Laying out the change files of {START} to {LAST}"):
        landing = Path(os.environ["TIDEMARK_LANDING"])
        laid = layout.lay_out(landing, first=START, last=LAST)
        console.print(f"  {laid.rows:,} rows in {laid.files} files of {laid.days} days under {landing}")
    with parts.timed("start", "Starting Airflow"):
        airflow("up")
    try:
        with parts.timed("backfill", f"Backfilling {COLLECTION} from {START} to {LAST} through the scheduler"):
            backfill(AirflowApi.local())
        with parts.timed("check", "The frontiers"):
            wrong = report()
        with parts.timed(
            "derived", f"Computing {len(derived.DERIVED)} collections from {COLLECTION} and {derived.CARRIERS}"
        ):
            wrong += compute(AirflowApi.local())
        with parts.timed("correction", f"{WRONG_DAY:%A}, {WRONG_DAY}, was wrong: its file is mended, its run cleared"):
            wrong += correct(AirflowApi.local())
    finally:
        if os.environ.get("CI"):
            with parts.timed("stop", "Stopping Airflow"):
                airflow("down")
    console.print(f"\nDone in {sum(parts.took.values()):.0f} s: {parts}.")
    if not os.environ.get("CI"):
        airflow("status")
        console.print(f"Look at {os.environ['AIRFLOW__API__BASE_URL']}/dags/{COLLECTION}, or ask in a shell:")
        console.print(f"  tools/run tidemark status {COLLECTION}")
        console.print(f"  tools/run tidemark as-of {COLLECTION} --time 2013-01-03T12:00:00Z --limit 5")
    return 1 if wrong else 0


class Parts:
    """The seconds that each part of the demo took."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str, heading: str) -> Iterator[None]:
        step(heading)
        began = time.monotonic()
        yield
        self.took[name] = time.monotonic() - began

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.took.items())


def seconds_of_setup() -> float:
    """What `make` spent on set-up before it came here."""
    file = HOME / "build" / "setup.seconds"
    return float(file.read_text()) if file.exists() else 0.0


def step(text: str) -> None:
    console.print(f"\n[bold]{text}[/]")


def airflow(command: str) -> None:
    subprocess.run([sys.executable, str(HOME / "tools" / "local_airflow.py"), command], check=True)


def backfill(api: AirflowApi) -> None:
    """Run the days, which are one run, and show every task until all is done; RuntimeError if a run fails."""
    api.wait_for_dag(COLLECTION, seconds=600)
    api.unpause(COLLECTION)
    api.backfill(COLLECTION, START.isoformat(), LAST.isoformat())
    began = time.monotonic()
    finished: set[str] = set()
    # Where no terminal is, Live shows its last picture only; a line a run tells the log how far it is.
    with Live(console=console, refresh_per_second=4, transient=not console.is_terminal) as live:
        while True:
            runs = [run for run in api.runs(COLLECTION) if run["run_type"] == "backfill"]
            live.update(progress(api, runs) if console.is_terminal else Text(""))
            if any(run["state"] == "failed" for run in runs):
                raise RuntimeError(f"a run failed: see {api.address}/dags/{COLLECTION}")
            for run in runs:
                if run["state"] == "success" and run["dag_run_id"] not in finished:
                    finished.add(run["dag_run_id"])
                    live.console.print(f"  {days_of(run)}  done in {seconds(run):.0f} s")
            if runs and all(run["state"] == "success" for run in runs):
                return
            if time.monotonic() - began > RUN_LIMIT_SECONDS:
                raise RuntimeError(f"the backfill did not finish within {RUN_LIMIT_SECONDS} s")
            time.sleep(1)


def days_of(run: dict[str, Any]) -> str:
    """The days that a run is about."""
    first, end = (date.fromisoformat(run[f"data_interval_{name}"][:10]) for name in ("start", "end"))
    last = end - timedelta(days=1)
    return str(first) if first == last else f"{first} to {last}"


def seconds(run: dict[str, Any]) -> float:
    """How long a run took, in the scheduler's account."""
    started, ended = (datetime.fromisoformat(run[name]) for name in ("start_date", "end_date"))
    return (ended - started).total_seconds()


def progress(api: AirflowApi, runs: list[dict[str, Any]]) -> Table:
    """One line a run, one mark a task."""
    table = Table(box=None, pad_edge=False)
    for heading in ("days", "state", TASKS):
        table.add_column(heading)
    for run in runs:
        marks = ""
        if run["state"] in ("running", "failed"):
            tasks = sorted(api.tasks(COLLECTION, run["dag_run_id"]), key=lambda task: task["start_date"] or "9")
            marks = " ".join(MARKS.get(task["state"], "·") for task in tasks)
        table.add_row(days_of(run), run["state"], Text.from_markup(marks))
    return table


def report() -> int:
    """Print frontiers, as-of answers before and after late rows, changes of a day; return how many figures differ."""
    flights = tidemark.open(os.environ["TIDEMARK_ROOT"], COLLECTION)
    state = flights.state
    for name, promise in FRONTIERS.items():
        console.print(f"  {name:14}  {format_instant(getattr(state, name))}   {promise}")
    levels = ", ".join(f"{batch.rows:,} at level {batch.level}" for batch in state.trace if batch.rows)
    batches = counted(len(state.trace), "trace batch", "trace batches")
    console.print(f"  {batches} (rows: {levels}), version {flights.version}")

    days = (LAST - FIRST).days + 1
    ours = answers.figures(flights, first=FIRST, days=days)
    step("Calculating the same figures straight from the CSV")
    theirs = independent_figures(date.fromisoformat(format_instant(state.complete_below)[:10]), days)
    step("The collection as of each day's last instant: as known then, and as known now that late rows have come")
    console.print(table_of(ours, ("rows", "late", "inserts", "deletes"), ("at_seal", "now")))
    wrong = sum(differences(day, expected, f"{day['day']} ") for day, expected in zip(ours, theirs, strict=True))
    wrong += state.trace_upper != state.seal
    return print_agreement(wrong, sum(leaves(day) for day in theirs) + 1, "figures")


def print_agreement(wrong: int, total: int, what: str) -> int:
    """Say how many agree; return how many do not."""
    style = "red" if wrong else "green"
    console.print(f"[{style}]{total - wrong:,} of {total:,} {what} agree with the independent calculation.[/]")
    return wrong


def correct(api: AirflowApi) -> int:
    """Mend the file, clear the run it came with, and check every figure before and after and every row that changed;
    return how many differ."""
    flights = tidemark.open(os.environ["TIDEMARK_ROOT"], COLLECTION)
    known_before = flights.state.seal - 1
    derived_before = {name: derived.opened(name).state.seal - 1 for name in derived.DERIVED}
    landing = Path(os.environ["TIDEMARK_LANDING"])
    console.print(f"  mended: {layout.mend(landing).relative_to(landing)}")
    console.print(f"  ingest: {run_again(api)}")
    flights.refresh()
    before, after = known_by_csv(), known_by_csv(independent.mended)
    learned, expected = answers.corrections(flights, known_before), independent.corrections(before, after)
    signs = {sign: sum(count for (*_, diff), count in learned.items() if diff == sign) for sign in (-1, 1)}
    console.print(f"  {signs[-1]:,} rows retracted and {signs[1]:,} added in the collection's history:")
    days = [FIRST + n * timedelta(days=1) for n in range((LAST - FIRST).days + 1)]
    ours, theirs = [], []
    for day in days:
        end = independent.start_of(day + timedelta(days=1)) - independent.INSTANT
        knowns = {"at_seal": answers.start_of(day + timedelta(days=1)) - 1, "before": known_before, "now": None}
        ours.append({"day": str(day), **{when: answers.known_at(flights, at, day) for when, at in knowns.items()}})
        asked = {"at_seal": (before, end), "before": (before, None), "now": (after, None)}
        found = {when: independent.as_of(known, time=at, event_time=end) for when, (known, at) in asked.items()}
        theirs.append({"day": str(day), **{when: independent.summary(current) for when, current in found.items()}})
    console.print(table_of(ours, (), ("before", "now")))
    wrong = sum(differences(day, expected, f"{day['day']} ") for day, expected in zip(ours, theirs, strict=True))
    rows = (learned - expected).total() + (expected - learned).total()
    if rows:
        console.print(f"[red]  {rows} rows are not as calculated[/]")
    wrong = print_agreement(wrong + rows, sum(map(leaves, theirs)) + expected.total(), "figures and rows")
    return wrong + follow(api, before, after, derived_before)


def compute(api: AirflowApi) -> int:
    """Bring the derived collections up and check every row of theirs, as known at each day's end and now; return how
    many differ. Of windows, print how many were there the day before and are others now."""
    derived.bring_up(api)
    wrong = total = 0
    cells: dict[str, list[str]] = {}
    for one in derived.compared(known_by_csv(), FIRST, (LAST - FIRST).days + 1):
        corrected = f", {one.corrected:,} corrected" if one.corrected and one.name in derived.WINDOWED else ""
        differ = f" [red]({one.differing:,} differ)[/]" if one.differing else ""
        cells.setdefault(one.when, []).append(f"{one.rows:,}{corrected}{differ}")
        wrong, total = wrong + one.differing, total + one.rows
    table = Table(box=None, pad_edge=False)
    table.add_column("rows known")
    for name in derived.DERIVED:
        table.add_column(name, justify="right")
    for when, of_each in cells.items():
        table.add_row(when, *of_each)
    console.print(table)
    for origin, start, end, flights in derived.busiest():
        console.print(f"  busiest half hour of {origin}: {start:%Y-%m-%d %H:%M} to {end:%H:%M}, {flights} flights")
    return print_agreement(wrong, total, "rows of derived collections")


def follow(api: AirflowApi, before: independent.Known, after: independent.Known, known_before: dict[str, int]) -> int:
    """Wait until the derived collections have followed the correction, which nobody asks them to, and check every row
    by which they did; return how many differ."""
    derived.settle(api)
    wrong = total = 0
    for name, taken, added, rows, differing in derived.followed(before, after, known_before):
        console.print(f"  {name} followed by itself: {taken:,} rows retracted and {added:,} added")
        wrong, total = wrong + differing, total + rows
    wrong = print_agreement(wrong, total, "rows by which they followed")
    return wrong + revised(before, after)


def revised(before: independent.Known, after: independent.Known) -> int:
    """Say how many windows were corrected after they were there, and check of each how often; return how many
    differ."""
    wrong = total = 0
    mended = answers.times_mended(tidemark.open(os.environ["TIDEMARK_ROOT"], COLLECTION))
    for name, count, corrected, differing in derived.revised(before, after, FIRST, (LAST - FIRST).days + 1, mended):
        console.print(f"  {name}: {corrected:,} of {count:,} windows were corrected after they were there")
        wrong, total = wrong + differing, total + count
    return print_agreement(wrong, total, "counts of how often a window was corrected")


def run_again(api: AirflowApi) -> str:
    """Clear the run that WRONG_DAY came with and wait; what its ingest says that it changed."""
    wrong = WRONG_DAY.isoformat()
    (run,) = (
        run for run in api.runs(COLLECTION) if run["data_interval_start"][:10] <= wrong < run["data_interval_end"][:10]
    )
    api.clear(COLLECTION, run["dag_run_id"])
    began = time.monotonic()
    while (run := api.run(COLLECTION, run["dag_run_id"]))["state"] != "success":
        if run["state"] == "failed" or time.monotonic() - began > RUN_LIMIT_SECONDS:
            raise RuntimeError(f"the run of {WRONG_DAY} did not end well: see {api.address}/dags/{COLLECTION}")
        time.sleep(1)
    return str(api.returned(COLLECTION, run["dag_run_id"], "ingest")["changed"])


def independent_figures(sealed: date, days: int) -> list[dict[str, Any]]:
    """What the CSV says, after the runs of all days that are sealed."""
    known = known_by_csv(last=sealed - timedelta(days=1))
    return [independent.day_figures(known, FIRST + n * timedelta(days=1)) for n in range(days)]


def known_by_csv(
    mended: Callable[[Iterable[independent.Row]], Iterable[independent.Row]] = iter, *, last: date = LAST
) -> independent.Known:
    """What the CSV makes known by the runs of all days, its rows `mended`."""
    rows = (row for flight in independent.flights() for row in independent.reports(flight))
    return independent.ingest(mended(rows), last=last)


def table_of(days: list[dict[str, Any]], counts: Sequence[str], known: Sequence[str]) -> Table:
    """A line a day for each time at which something was `known` of its last instant; the first has the `counts`."""
    table = Table(box=None, pad_edge=False)
    for heading in ("day", *counts, "known", "flights", *answers.STATUSES, "mean delay"):
        table.add_column(heading, justify="left" if heading in ("day", "known") else "right")
    for day in days:
        head = [day["day"], *(sum(day[name].values()) if name == "late" else day[name] for name in counts)]
        for when, cells in zip(known, (head, *([""] * len(head) for _ in known[1:])), strict=True):
            entry = day[when]
            mean = "-" if entry["delay_mean"] is None else f"{entry['delay_mean']:.3f}"
            row = [*cells, when.replace("_", " "), entry["flights"], *entry["statuses"].values(), mean]
            table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    return table


def differences(ours: dict[str, Any], theirs: dict[str, Any], path: str = "") -> int:
    """How many figures differ; each is printed with both values."""
    count = 0
    for name, expected in theirs.items():
        found = ours.get(name)
        if isinstance(expected, dict) and isinstance(found, dict):
            count += differences(found, expected, f"{path}{name}.")
        elif found != expected:
            console.print(f"[red]  {path}{name}: Tidemark {found}, calculated {expected}[/]")
            count += 1
    return count


def leaves(figures: dict[str, Any]) -> int:
    return sum(leaves(value) if isinstance(value, dict) else 1 for value in figures.values())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.CalledProcessError) as error:
        console.print(f"[red]{error}[/]")
        sys.exit(1)

"""The page of one gate run, made when it is opened from what the run left behind (quality/results.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from tidemark.airflow.web.outcome import now_of
from tidemark.airflow.web.page import Markup, Page, document, joined, table, tag, with_commands
from tidemark.model.arrangement import Arrangement
from tidemark.model.instant import format_instant
from tidemark.quality.gates import way_out
from tidemark.quality.results import ResultName
from tidemark.quality.suites import CRITICAL

SHOWN_RESULTS = 30
SHOWN_CHECKS = 500

_SAYS = {
    "passed": ("passed", "good"),
    "failed": ("failed", "bad"),
    "refused": ("could not run", "bad"),
    "nothing": ("had nothing to look at", "quiet"),
}
_NOTHING_TO_LOOK_AT = "Everything there was had been certified before, under the same suite."
_NONE = "No result of this gate is kept: it has not run yet, or long ago."


@dataclass(frozen=True)
class Shown:
    """A gate's results, newest first, and the one that is asked for: `document` is what it holds, None if it is not
    kept (any more). `asked` says which run was asked for, in words."""

    collection: str
    gate: str
    names: Sequence[ResultName]
    chosen: ResultName | None
    document: Mapping[str, Any] | None
    asked: str = ""


def gate_page(shown: Shown, state: Arrangement | None, *, rows: bool = True) -> Page:
    """The page; `state` is the collection's as it is now, None where that cannot be read. Failing rows are shown to who
    may see `rows`."""
    title = f"{shown.gate} gate of {shown.collection}"
    up = tag("a", shown.collection, href=f"../../../dags/{shown.collection}", target="_top")
    heading = tag("h1", f"{shown.gate} gate of ", up)
    others = _others(shown)
    if shown.document is None:
        missing = f"No result of {shown.asked} is kept: it has not ended yet, or long ago." if shown.asked else _NONE
        return document(title, heading, tag("p", missing, class_="quiet"), others)
    found = shown.document
    failed = [result for result in found["results"] if not result.get("passed")]
    return document(
        title,
        heading,
        _verdict(found),
        _now(found, state, shown),
        *(_finding(result, rows=rows) for result in failed),
        *_way_out(found, failed),
        _checks(found),
        others,
    )


def _verdict(found: Mapping[str, Any]) -> Markup:
    says, class_ = _SAYS.get(str(found.get("outcome")), ("ended", "quiet"))
    batches = found["batches"]
    judged = [result for result in found["results"] if not result.get("not_asked")]
    about = f"{_count(len(judged), 'check')} of {found.get('suite') or 'no suite'}"
    about += f" on {_count(len(batches), 'batch')}" if batches else ""
    about += f", up to {format_instant(found['upper'])}" if found.get("upper") is not None else ""
    lines = [
        tag("p", says, class_=class_),
        tag("p", f"{_who(found)}, {_second(found['kept_at'])}", class_="quiet"),
        tag("p", _NOTHING_TO_LOOK_AT if found.get("outcome") == "nothing" else about, class_="quiet"),
    ]
    lines += [tag("p", f"accepted by a person: batch {words}") for words in found.get("accepted") or ()]
    if found.get("error"):
        lines.append(tag("p", found["error"]))
    return joined(lines)


def _who(found: Mapping[str, Any]) -> str:
    if not found.get("run_id"):
        return f"attempt {found.get('attempt')}"
    index = f", index {found['map_index']}" if found["map_index"] >= 0 else ""
    return f"run {found['run_id']}, task {found['task_id']}{index}, try {found['try_number']}"


def _second(micros: int) -> str:
    return format_instant(micros // 1_000_000 * 1_000_000)


def _now(found: Mapping[str, Any], state: Arrangement | None, shown: Shown) -> Markup:
    """What became of what this run looked at."""
    lines = [tag("li", line.text, class_=line.kind) for line in now_of(found, state)]
    newer = next((name for name in shown.names if shown.chosen and name.kept_at > shown.chosen.kept_at), None)
    if newer:
        says, class_ = _SAYS[newer.outcome]
        lines.append(tag("li", "a later run of this gate ", _link(newer, says), class_=class_))
    return joined([tag("h3", "Now"), tag("ul", joined(lines))] if lines else [])


def _way_out(found: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> list[Markup]:
    """A line for each batch that failed."""
    critical = [result for result in failed if result.get("severity") == CRITICAL]
    name = found.get("collection")
    if found.get("outcome") == "refused":
        return [tag("p", "The way out: mend ", tag("code", "quality"), " in the collection's file, clear the run.")]
    if not critical:
        return []
    ways = dict.fromkeys(
        way_out(str(found.get("gate")), name, str(result.get("batch"))[:12], again="clear the run")
        for result in sorted(critical, key=lambda result: str(result.get("batch")))
    )
    return [tag("p", "The way out: ", with_commands(way), ".") for way in ways if way]


def _finding(result: Mapping[str, Any], *, rows: bool) -> Markup:
    about = f"batch {str(result.get('batch'))[:12]}" if result.get("batch") else "the frontier"
    class_ = "bad" if result.get("severity") == CRITICAL else "quiet"
    return tag(
        "section",
        tag("header", tag("h2", result.get("rule")), tag("span", f"{result.get('severity')}, {about}", class_=class_)),
        tag("p", result.get("message")),
        tag("p", result.get("asked"), class_="quiet"),
        *(_failing_rows(result) if rows else []),
    )


def _failing_rows(result: Mapping[str, Any]) -> list[Markup]:
    rows, failing = result.get("rows") or [], result.get("failing")
    shown = f"{len(rows)} of {failing} rows" if failing else f"{len(rows)} rows"
    found = [tag("h3", shown), table(list(rows[0]), [_as_they_are(row, rows[0]) for row in rows])] if rows else []
    left_out = [tag("p", "Its rows are too many to be kept.", class_="quiet")] if result.get("rows_left_out") else []
    return [*found, *left_out]


def _checks(found: Mapping[str, Any]) -> Markup:
    """Everything that was checked, and what was seen."""
    results = found["results"]
    if not results:
        return joined([])
    lines = [
        (
            _passed(result),
            str(result.get("batch") or "")[:12],
            result.get("rule"),
            result.get("asked"),
            result.get("observed"),
        )
        for result in results[:SHOWN_CHECKS]
    ]
    more = len(results) - len(lines) + int(found.get("results_left_out") or 0)
    note = [tag("p", f"and {more:,} more", class_="quiet")] if more else []
    return joined([tag("h3", "Checked"), table(("", "batch", "rule", "expectation", "observed"), lines), *note])


def _passed(result: Mapping[str, Any]) -> Markup:
    if result.get("not_asked"):
        return tag("span", "not asked", class_="quiet")
    return tag("span", "passed", class_="good") if result.get("passed") else tag("span", "failed", class_="bad")


def _others(shown: Shown) -> Markup:
    """Links to the gate's other results."""
    names = [name for name in islice(shown.names, SHOWN_RESULTS) if name != shown.chosen]
    lines = [tag("li", _link(name, _second(name.kept_at)), f" {_SAYS[name.outcome][0]}") for name in names]
    return joined([tag("h3", "Other runs of this gate"), tag("ul", joined(lines))] if lines else [])


def _link(name: ResultName, text: str) -> Markup:
    return tag("a", text, href="?" + urlencode({"result": name.name}))


def _count(count: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{count:,} {what if count == 1 else plural}"


def _as_they_are(row: Mapping[str, Any], first: Iterable[str]) -> list[str | None]:
    """Values, which are not figures of ours: a key of 12345 is not 12,345."""
    return [None if row.get(name) is None else str(row.get(name)) for name in first]

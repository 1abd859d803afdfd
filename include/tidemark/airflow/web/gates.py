"""The pages of a gate's last failure: what failed in our words, and Great Expectations' Data Docs beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tidemark.airflow import settings
from tidemark.airflow.web.page import Markup, document, joined, table, tag
from tidemark.model.collection import NAME, Gate
from tidemark.quality.suites import CRITICAL

_NOTHING = tag(
    "p",
    "No run of this gate has failed: what passes leaves a certificate in the collection, and no page.",
    class_="quiet",
)


def folder_of(collection: str, gate: str) -> Path | None:
    """Where a gate leaves its Data Docs; None for what is no collection or no gate."""
    if not NAME.fullmatch(collection) or gate not in list(Gate):
        return None
    return settings.docs_folder() / collection / gate


def docs_file(collection: str, gate: str, path: str) -> Path | None:
    """A file of a gate's Data Docs; None if there is none, or if the path leads out of their folder."""
    folder = folder_of(collection, gate)
    if folder is None or "\0" in path:
        return None
    file = (folder / path).resolve()
    return file if file.is_relative_to(folder.resolve()) and file.is_file() else None


def gate_page(collection: str, gate: str) -> str:
    """The gate's last failure, or that there was none."""
    title = tag("h1", f"{gate} gate of ", tag("a", collection, href=f"../../../dags/{collection}"))
    file = docs_file(collection, gate, "report.json")
    if file is None:
        return document(f"{gate} gate of {collection}", title, _NOTHING)
    report = json.loads(file.read_text())
    findings = [result for result in report["results"] if not result["passed"]]
    verdict = tag("p", "passed", class_="good") if report["passed"] else tag("p", "failed", class_="bad")
    about = f"{len(report['results'])} checks of {report['suite']} on {_count(report['batches'])}"
    summary = tag("p", about, class_="quiet")
    return document(
        f"{gate} gate of {collection}",
        title,
        verdict,
        summary,
        *map(_finding, findings),
        *_way_out(report),
        _validations(collection, gate),
    )


def _way_out(report: Mapping[str, Any]) -> list[Markup]:
    """A line for each batch that failed."""
    critical = [r for r in report["results"] if not r["passed"] and r["severity"] == CRITICAL]
    if report["gate"] != Gate.UNSEALED:
        look = tag("code", f"tidemark verify {report['collection']} --data")
        return [tag("p", "Nothing of it was published. Look with ", look, ".")] if critical else []
    batches = sorted({result["batch"][:12] for result in critical})
    commands = [tag("code", f"tidemark quarantine {report['collection']} {batch}") for batch in batches]
    return [tag("p", "The way out: ", command, ", mend the file, clear the run.") for command in commands]


def _validations(collection: str, gate: str) -> Markup:
    """Links to the pages themselves: the index of Data Docs needs scripts from elsewhere to list them."""
    folder = settings.docs_folder() / collection / gate
    pages = sorted(page.relative_to(folder).as_posix() for page in (folder / "validations").rglob("*.html"))
    links = [
        tag(
            "li",
            tag("a", Path(page).parts[1].removesuffix(".html"), href=f"../../docs/{collection}/{gate}/{quote(page)}"),
        )
        for page in pages
    ]
    return joined([tag("h3", "Data Docs of Great Expectations"), tag("ul", joined(links))] if links else [])


def _count(batches: list[str]) -> str:
    return "1 batch" if len(batches) == 1 else f"{len(batches)} batches"


def _finding(result: Mapping[str, Any]) -> Markup:
    about = f"batch {result['batch'][:12]}" if result["batch"] else "the frontier"
    rows = result["rows"]
    shown = f"{len(rows)} of {result['failing']} rows" if result["failing"] else f"{len(rows)} rows"
    return tag(
        "section",
        tag("header", tag("h2", result["rule"]), tag("span", f"{result['severity']}, {about}", class_="bad")),
        tag("p", result["message"]),
        joined([tag("h3", shown), table(list(rows[0]), [_as_they_are(row) for row in rows])] if rows else []),
    )


def _as_they_are(row: Mapping[str, Any]) -> list[str | None]:
    """Values, which are not figures of ours: a key of 12345 is not 12,345."""
    return [None if value is None else str(value) for value in row.values()]

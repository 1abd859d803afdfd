"""HTML of the pages, from JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tidemark.airflow.web import cells, chart, drawing, inline, policy
from tidemark.airflow.web.lanes import lanes
from tidemark.airflow.web.markup import Markup as Markup
from tidemark.airflow.web.markup import joined as joined
from tidemark.airflow.web.markup import tag as tag
from tidemark.airflow.web.markup import with_commands as with_commands
from tidemark.airflow.web.status_table import status_table
from tidemark.jobs.queries.status import frontiers_of
from tidemark.model.instant import format_instant

REFRESH_SECONDS = 10

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --text: light-dark(#1c2733, #dbe4ee);
  --quiet: light-dark(#5b6b7b, #93a3b5); --back: light-dark(#fff, #111923); --card: light-dark(#f7f9fb, #18222e);
  --trace: light-dark(#2f6f9f, #5aa3d6); --unsealed: light-dark(#c98a1b, #e0a941); --bad: light-dark(#b3261e, #ff8a80);
  --good: light-dark(#1d7a46, #6fcf97); --open: light-dark(#9bb8d3, #3d5a73); --marked: light-dark(#d9782d, #f0a05a) }
* { box-sizing: border-box }
body { margin: 0; padding: 1.5rem; background: var(--back); color: var(--text);
  font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 1rem } h2 { font-size: 1.15rem; margin: 0 }
h3 { font-size: .8rem; margin: 1.1rem 0 .4rem; color: var(--quiet); font-weight: 600; text-transform: uppercase;
  letter-spacing: .05em }
a { color: var(--trace) } p { margin: .3rem 0 }
.quiet { color: var(--quiet) } .marked { color: var(--marked) } .bad { color: var(--bad) } .good { color: var(--good) }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.2rem;
  margin: 0 0 1.2rem }
header { display: flex; gap: 1rem; align-items: baseline; flex-wrap: wrap }
code { font: 12.5px ui-monospace, monospace } time, td code { white-space: nowrap }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; padding: .22rem .9rem .22rem 0; vertical-align: top; border-bottom: 1px solid var(--soft) }
th { color: var(--quiet); font-weight: 500 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
.scroll { overflow-x: auto } .range { display: flex; flex-wrap: wrap; gap: .4rem .8rem; align-items: center }
input, button { font: inherit; color: var(--text); background: var(--back); border: 1px solid var(--line);
  border-radius: 5px; padding: .25rem .6rem } button { cursor: pointer; background: var(--soft) }
a.button { border: 1px solid var(--line); border-radius: 5px; padding: .15rem .6rem; text-decoration: none }
summary { cursor: pointer; color: var(--quiet); margin-top: 1rem } button:disabled { opacity: .5 }
:is(a, button, input):focus-visible { outline: 2px solid var(--trace) }
pre { overflow-x: auto; font: 12.5px/1.5 ui-monospace, monospace }
p, li { overflow-wrap: anywhere } td { overflow-wrap: break-word; max-width: 40rem }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 0 2.5rem }
.lane { display: grid; grid-template-columns: 6.5rem 1fr; align-items: center; margin: 3px 0 }
.track { width: 100%; background: var(--soft); border-radius: 3px }
.track text { fill: light-dark(#fff, #0d1620); font-size: 11px }
.bar { fill: var(--trace); stroke: var(--card); stroke-width: 2px }
.bar.unsealed { fill: var(--unsealed) } .bar.uncertified { stroke: var(--bad); stroke-width: 4px; stroke-dasharray: 5 4
} .bar.empty { opacity: .35 }
.choices p { display: flex; flex-wrap: wrap; gap: .1rem .8rem } .choices p > .quiet:first-child { min-width: 6rem }
.wide table { min-width: 52rem } .wide time { white-space: nowrap }
.axis { display: flex; justify-content: space-between; margin-left: 6.5rem; font-size: 12px; color: var(--quiet) }
@media (max-width: 42rem) { body { padding: .6rem } section { padding: .7rem } td { overflow-wrap: anywhere }
  td code, time { white-space: normal } .columns { grid-template-columns: 1fr } }
"""
STYLE += drawing.STYLE + inline.STYLE + cells.STYLE + chart.STYLE


@dataclass(frozen=True)
class Page:
    """A whole page and the policy it is served under."""

    html: str
    policy: str


def document(title: str, *content: str, refresh: bool = False, script: str = "", **policy_of: bool) -> Page:
    """A whole page; `refresh`: one that reloads itself every REFRESH_SECONDS. The others are what `policy.page` takes:
    `linked` for one whose links lead on to pages of ours in Airflow's frame, `forms`, `downloads`; a `script` is run as
    a module once the page is there."""
    again = Markup(f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">') if refresh else ""
    head = joined([Markup('<meta charset="utf-8">'), again, tag("title", title), tag("style", Markup(STYLE))])
    module = [tag("script", Markup(script), type="module")] if script else []
    html = "<!doctype html>" + tag("html", tag("head", head), tag("body", joined([*content, *module])), lang="en")
    return Page(html, policy.page(STYLE, live=refresh, script=script, **policy_of))


def overview_page(
    root: str,
    entries: Sequence[Mapping[str, Any]],
    *,
    after: str = "",
    more: bool = False,
    now: int = 0,
    sort: str = "",
) -> Page:
    """The page of collections: those whose names come `after` a text, and whether there are `more`; a table of them as
    of `now` (µs), by the column `sort`, and a picture of what is made of what."""
    nothing = tag("p", "No collection here yet: backfill a DAG, or say ", tag("code", "tidemark init"), ".")
    if after:
        nothing = tag("p", f"No collection comes after {after}.")
    title = tag("h1", "Tidemark ", tag("span", f"collections in {root}", class_="quiet"))
    others = _other_pages(entries, after, more)
    lines = status_table(entries, now, _short_verdict, sort=sort, after=after) if entries else nothing
    return document("Tidemark", title, *others, lines, *drawing.graph(entries), *others, refresh=True)


def way_to_status(name: str, *more: Markup) -> Markup:
    """The line above a page of a collection: the way to its first page, and `more` ways beside it."""
    ways = [tag("a", f"{name}, status", href=f"../{name}"), *more]
    return tag("p", *(part for way in ways for part in (way, " ")), class_="quiet")


def after_link(entries: Sequence[Mapping[str, Any]]) -> str:
    """The query of the page that follows these entries."""
    return "?" + urlencode({"after": entries[-1]["collection"]})


def _other_pages(entries: Sequence[Mapping[str, Any]], after: str, more: bool) -> list[Markup]:
    """The ways to the first page and to the next; nothing where all collections are on this one."""
    ways: list[object] = [tag("a", "first collections", href="./")] if after else []
    if more:
        ways.append(tag("a", f"collections after {entries[-1]['collection']}", href=after_link(entries)))
    return [tag("p", *(part for way in ways for part in (way, " ")), class_="quiet")] if ways else []


_OTHERS = tag("p", tag("a", "all collections", href="../"), class_="quiet")


def absent_page(name: str, why: str, more: Sequence[Markup] = (), *, declared: bool = False) -> Page:
    """The page of a collection that is not there.

    Args:
        name: Its name.
        why: Why it is not, where that is known.
        more: What is to be said of its DAG.
        declared: Whether there is a file of it.
    """
    why = why or f"There is no collection {name}: no run of its DAG has begun, or the DAG runs something else"
    way = [" A backfill begins it: ", tag("a", "what one would read", href=f"{name}/backfill"), "."]
    nothing = tag("p", f"{why[0].upper()}{why[1:]}.", *(way if declared else []))
    return document(name, *more, nothing, _OTHERS, refresh=True)


def collection_page(
    name: str,
    entry: Mapping[str, Any],
    more: Sequence[Markup] = (),
    *,
    framed: bool = False,
    rows: bool = False,
    cut: Markup | None = None,
    script: str = "",
) -> Page:
    """The page of one collection.

    Args:
        name: Its name.
        entry: What the overview says of it.
        more: What is to be said of its DAG.
        framed: Whether it is in Airflow's frame, which lets no link out: the page has none to the DAG.
        rows: Whether it leads to where rows are shown.
        cut: What is said of its batches by load, with a button.
        script: What the button runs.
    """
    card = _broken(entry) if "error" in entry else _card(entry, href="" if framed else f"../../dags/{name}")
    more_of_it = [*([cut] if cut else []), *_more_pages(entry), *(_windows(entry) if rows else [])]
    return document(name, *more, card, *more_of_it, _OTHERS, refresh=True, script=script)


def _more_pages(entry: Mapping[str, Any]) -> list[Markup]:
    """The ways to the other pages of a collection."""
    if "error" in entry:
        return []
    pages = (
        ("calendar", "by interval", "what came of each day, what is missing, late, refused or corrected"),
        ("about", "what it is", "columns, key and definition, and some rows"),
        ("backfill", "backfill", "a range of days: what it would read first, then a button"),
        ("history", "over time", "how far behind it was, rows and late rows, and its versions"),
    )
    ways = (tag("li", tag("a", name, href=f"{entry['collection']}/{page}"), f": {said}") for page, name, said in pages)
    return [tag("section", tag("h2", "More"), tag("ul", *ways))]


def _windows(entry: Mapping[str, Any]) -> list[Markup]:
    """The way to the windows of a collection that is defined by them. They are read when they are asked for."""
    if not entry.get("windows"):
        return []
    way = tag("a", "a picture and a table", href=f"{entry['collection']}/windows")
    return [tag("section", tag("h2", "Windows"), tag("p", entry["windows"]), tag("p", way))]


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; numbers are set right."""
    lines = list(rows)
    numeric = [bool(lines) and all(isinstance(line[at], int | float) for line in lines) for at in range(len(header))]

    def cells(kind: str, line: Sequence[object]) -> Markup:
        classes: list[dict[str, object]] = [{"class_": "number"} if is_number else {} for is_number in numeric]
        return joined(tag(kind, _text(value), **classes[at]) for at, value in enumerate(line))

    body = joined(tag("tr", cells("td", line)) for line in lines)
    top = tag("thead", tag("tr", cells("th", header))) if any(header) else ""
    return tag("div", tag("table", top, tag("tbody", body)), class_="scroll")


def _text(value: object) -> object:
    if value is None:
        return tag("span", "null", class_="quiet")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def _broken(entry: Mapping[str, Any]) -> Markup:
    return tag("section", tag("h2", entry["collection"]), tag("p", entry["error"], class_="bad"))


def _card(entry: Mapping[str, Any], *, href: str) -> Markup:
    name = entry["collection"]
    heading = tag("a", name, href=href) if href else name
    changes = [(str(each["version"]), _seconds(each["written_at"]), each["change"]) for each in entry["changes"]]
    figures = tag(
        "div", tag("div", tag("h3", "Rows"), table(("", ""), _figures(entry))), *_corrections(entry), class_="columns"
    )
    return tag(
        "section",
        tag("h2", heading),
        *_lead(entry),
        *_overdue(entry),
        *_quarantine(entry),
        *_inputs(entry),
        figures,
        tag("h3", "Last changes"),
        table(("version", "when", "what"), changes),
        _internals(entry),
    )


def _lead(entry: Mapping[str, Any]) -> list[Markup]:
    """How far it is, and what blocks it, with the way to what can be done about that."""
    how_far = tag("p", tag("b", _how_far(entry, drawing.short)), ".")
    words, class_, way = _next(entry)
    return [how_far, tag("p", tag("span", words, class_=class_), *way)]


def _how_far(entry: Mapping[str, Any], written: Callable[[str], str] = str) -> str:
    """Up to where all can be read, as a sentence."""
    if not entry["seal"]:
        return "Nothing of it is sealed yet"
    ended = entry["end"] is not None and entry["complete_below"] >= entry["end"]
    complete, known = written(entry["complete_below_text"]), written(entry["seal_text"])
    more = f", and corrections are known up to {known}" if known != complete else ""
    return f"It has ended, and is complete below {complete}{more}" if ended else f"Complete below {complete}{more}"


def _next(entry: Mapping[str, Any]) -> tuple[str, str, list[object]]:
    """What it waits for, or is to be done; how loud that is; and the way to it."""
    name, follows = entry["collection"], entry["follows"]
    if follows and follows["waits_for"]:
        return f"Waits for {follows['waits_for']}: {follows['why']}", "bad", []
    if entry["waiting_for"]:
        button = tag("a", "What to do", href=f"{name}/intervals/{entry['waiting_for_lower']}", class_="button")
        return f"Waits for {entry['waiting_for_words']}", "bad", [" ", button]
    if entry["trace_upper"] < entry["seal"] or entry["uncertified"] or not entry["seal"]:
        return "Not finished: next is ", "quiet", [tag("code", entry["next_step"])]
    return "Nothing blocks it.", "good", []


def _internals(entry: Mapping[str, Any]) -> Markup:
    """How it is stored: levels, frontiers, and what compaction owes."""
    return tag(
        "details",
        tag("summary", "Internals: levels, frontiers, compaction"),
        tag("h3", "Live batches, by level"),
        lanes(entry),
        tag("h3", "Frontiers"),
        _frontiers(entry),
        tag("h3", "Compaction"),
        table(("", ""), _compaction(entry)),
    )


def _seconds(time: int) -> Markup:
    return tag("time", format_instant(time // 1_000_000 * 1_000_000))


def _short_verdict(entry: Mapping[str, Any]) -> Markup:
    """Its state, in a line of a table."""
    words, class_, _ = _next(entry)
    said = _how_far(entry, drawing.short) if class_ == "good" else words.removesuffix(": next is ")
    return tag("span", f"{said[0].lower()}{said[1:]}", class_=class_)


def _overdue(entry: Mapping[str, Any]) -> list[Markup]:
    """That it should be sealed further, where its file says by when."""
    return [tag("p", entry["overdue"], class_="bad")] if entry.get("overdue") else []


def _frontiers(entry: Mapping[str, Any]) -> Markup:
    says = frontiers_of(derived=entry["follows"] is not None)
    return table(("", "", ""), [(name, tag("code", entry[f"{name}_text"]), meaning) for name, meaning in says.items()])


def _figures(entry: Mapping[str, Any]) -> list[tuple[str, int]]:
    figures = [
        ("written" if entry["follows"] else "ingested", entry["rows_ingested"]),
        ("in the trace", sum(level["rows"] for level in entry["levels"])),
        ("unsealed", entry["unsealed"]["rows"]),
        *([("ahead, not due yet", entry["ahead"]["rows"])] if entry["ahead"]["rows"] else []),
    ]
    if entry["follows"]:
        return figures
    return [
        *figures,
        ("late, applied", entry["late_applied"]),
        ("late, discarded", entry["late_discarded"]),
    ]


def _compaction(entry: Mapping[str, Any]) -> list[tuple[str, object]]:
    """What compaction owes and costs beside its bounds, and who holds it up."""
    bounds, debt = entry["bounds"], entry["debt"]

    def within(name: str, bound: str) -> str:
        value, most = bounds[name], bounds[bound]
        return "–" if value is None else f"{value}" if most is None else f"{value} of at most {most}"

    holds = [tag("div", f"{hold['name']} at ", tag("time", format_instant(hold["since"]))) for hold in entry["holds"]]
    return [
        ("live batches", within("live_batches", "live_bound")),
        ("rows written per row drained", within("written", "written_bound")),
        ("merges due", f"{debt['compactions']}, of {debt['rows']:,} rows"),
        ("readable", entry["readable"]),
        ("holds", joined(holds) or "none"),
    ]


def _quarantine(entry: Mapping[str, Any]) -> list[Markup]:
    """What was taken out, and how it comes in again; nothing where nothing was."""
    batches = entry["quarantine"]
    if not batches:
        return []
    lines = [
        (tag("code", batch["id"][:12]), batch["interval"], batch["rows"], _way_back(entry, batch)) for batch in batches
    ]
    return [tag("h3", "In quarantine"), table(("batch", "of", "rows", ""), lines)]


def _way_back(entry: Mapping[str, Any], batch: Mapping[str, Any]) -> Markup:
    if entry["follows"]:
        return with_commands("computed again by the next run")
    if not batch["may_be_released"]:
        return with_commands("its files may be ingested again: clear the run of its interval")
    back = f"`tidemark release {entry['collection']} {batch['id'][:12]}`"
    return with_commands(f"mend its files and clear the run of its interval; or, if it was right, {back}")


def _corrections(entry: Mapping[str, Any]) -> list[Markup]:
    """From when days can be run again, and what that costs; nothing where none can."""
    if entry["correctable_from"] is None:
        return []
    lines = [
        ("can be run again from", tag("code", entry["correctable_from_text"])),
        ("kept for that alone", f"{entry['reprocess_bytes']:,} bytes"),
    ]
    return [tag("div", tag("h3", "Corrections"), table(("", ""), lines))]


def _inputs(entry: Mapping[str, Any]) -> list[Markup]:
    """How far the inputs of a derived collection were consumed, and what they hold beyond; nothing of a landed one."""
    follows = entry["follows"]
    if follows is None:
        return []
    lines = [
        (
            one["name"],
            tag("code", one["consumed_text"] or "–"),
            tag("code", one["readable_text"] or "–"),
            _state_of_input(one),
        )
        for one in follows["inputs"]
    ]
    header = ("input", "consumed up to", "readable up to", "")
    last = [tag("p", "last: ", follows["last"], class_="quiet")] if follows["last"] else []
    return [tag("h3", "Inputs"), table(header, lines), *last]


def _state_of_input(one: Mapping[str, Any]) -> Markup:
    says = {"all": "all of it", "behind": "has more", "lags": "waited for", "hidden": "not yours to see"}[one["status"]]
    return tag("span", says, class_={"lags": "bad", "all": "good"}.get(one["status"], "quiet"))

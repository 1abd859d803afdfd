"""The graph of collections as a picture: who is made of whom, how far each is, and who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidemark.airflow.web.layout import WIDTH, Drawn, Edge, drawn
from tidemark.airflow.web.markup import Markup, joined, tag

STYLE = """
.graph .box { fill: var(--card); stroke: var(--line) } .graph .box.waits { stroke: var(--bad) }
.graph .box.unknown { stroke-dasharray: 4 4; fill: none }
.graph text { fill: var(--text); font-size: 12px } .graph .name { font-size: 14px; font-weight: 600 }
.graph a .name { fill: var(--trace) } .graph .time { text-anchor: end; font: 11px ui-monospace, monospace }
.graph .quiet { fill: var(--quiet) } .graph .bad { fill: var(--bad) } .graph .late { fill: var(--unsealed) }
.graph path { fill: none; stroke: var(--quiet); stroke-width: 1.5px; opacity: .75 }
.graph path.behind { stroke: var(--unsealed); stroke-width: 2px }
.graph path.lags { stroke: var(--bad); stroke-width: 2.5px; stroke-dasharray: 7 4 }
.more { color: var(--unsealed) }
.graph .end { fill: var(--quiet) } .graph .end.behind { fill: var(--unsealed) } .graph .end.lags { fill: var(--bad) }
"""
"""Of the one sheet that pages have."""

_TOP, _ROW, _PAD, _MARGIN = 24, 18, 12, 8
"""The baseline of a name; between lines; from a box's border to its text; around the picture."""
_LONGEST = 28
"""Characters of a name that fit into a box."""
_SHORT = 15
"""Characters of an input's name that fit beside a time."""

Entry = Mapping[str, Any]


def graph(entries: Sequence[Entry]) -> list[Markup]:
    """The picture, if any collection is made of others; else nothing: there are no lines to draw."""
    shown = {str(entry["collection"]): entry for entry in entries}
    if not any(_inputs(entry) for entry in entries):
        return []
    names = {*shown, *(str(one["name"]) for entry in entries for one in _inputs(entry))}
    heights = {name: _height(shown.get(name)) for name in names}
    edges = {
        Edge(str(one["name"]), name, _port(entry, at)): str(one["status"])
        for name, entry in shown.items()
        for at, one in enumerate(_inputs(entry))
    }
    at = drawn(heights, list(edges))
    lines = joined(_line(edge, at, state) for edge, state in sorted(edges.items(), key=_loudest_last))
    boxes = joined(_box(name, shown.get(name), at.boxes[name], heights[name]) for name in sorted(names))
    width, height = at.width + 2 * _MARGIN, at.height + 2 * _MARGIN
    inside = tag("g", lines, boxes, transform=f"translate({_MARGIN} {_MARGIN})")
    size = {"width": _figure(width), "height": _figure(height), "viewBox": f"0 0 {_figure(width)} {_figure(height)}"}
    picture = tag("svg", tag("title", "Collections and what they are made of"), inside, role="img", **size)
    return [tag("section", tag("div", picture, class_="graph scroll"), _LEGEND)]


_LEGEND = tag(
    "p",
    "A line leads from an input to what is made of it, with the time up to which it was consumed there: ",
    tag("span", "all of it", class_="quiet"),
    ", ",
    tag("span", "it has more", class_="more"),
    ", or ",
    tag("span", "it is waited for", class_="bad"),
    ".",
    class_="quiet",
)


def short(text: str) -> str:
    """A time in as few characters as people need, to the second: a midnight is its day."""
    return text.removesuffix("Z").partition(".")[0].removesuffix("T00:00:00")


def _inputs(entry: Entry | None) -> Sequence[Entry]:
    follows = entry.get("follows") if entry else None
    inputs: Sequence[Entry] = follows["inputs"] if follows else ()
    return inputs


def _facts(entry: Entry) -> list[tuple[str, str, str]]:
    """What a box says beside its name and its inputs: words, a time or nothing, and a class."""
    if "error" in entry:
        return [("cannot be read", "", "bad")]
    end = entry.get("end")
    ended = end is not None and entry["complete_below"] >= end
    facts = [("ended, complete below" if ended else "complete below", short(entry["complete_below_text"]), "")]
    if not entry["seal"]:
        facts = [("nothing is sealed yet", "", "quiet")]
    elif entry["seal"] != entry["complete_below"]:
        facts.append(("known up to", short(entry["seal_text"]), ""))
    follows = entry.get("follows")
    if follows and follows["waits_for"]:
        facts.append((f"waits for {_cut(follows['waits_for'], _LONGEST - 8)}", "", "bad"))
    elif entry["waiting_for"]:
        facts.append((f"waits for {_cut(entry['waiting_for_name'], _LONGEST - 8)}", "", "bad"))
    elif due := [batch for batch in entry["quarantine"] if batch["may_be_released"]]:
        facts.append((f"{len(due)} in quarantine", "", "bad"))
    return facts


def _height(entry: Entry | None) -> float:
    rows = len(_facts(entry)) + len(_inputs(entry)) if entry else 1
    return _TOP + rows * _ROW + 10


def _port(entry: Entry, at: int) -> float:
    """Where the line of an input arrives: at the row that says how far it was consumed."""
    return _TOP + (len(_facts(entry)) + at + 1) * _ROW - 4


def _box(name: str, entry: Entry | None, at: tuple[float, float], height: float) -> Markup:
    heading = tag("text", _cut(name, _LONGEST), class_="name", x=_PAD, y=_TOP)
    if entry is None:
        rows = [_row(1, "not on this page", "", "quiet")]
        kind = "box unknown"
    else:
        heading = tag("a", heading, href=f"collections/{name}")
        facts, follows = _facts(entry), entry.get("follows")
        rows = [_row(at, *fact) for at, fact in enumerate(facts, start=1)]
        rows += [_input_row(at, one) for at, one in enumerate(_inputs(entry), start=len(facts) + 1)]
        kind = "box waits" if (follows and follows["waits_for"]) or "error" in entry else "box"
    shape = tag("rect", class_=kind, width=WIDTH, height=_figure(height), rx=8)
    title = tag("title", _tooltip(name, entry))
    return tag("g", title, shape, heading, *rows, transform=f"translate({_figure(at[0])} {_figure(at[1])})")


def _tooltip(name: str, entry: Entry | None) -> str:
    """What a box says when it is pointed at."""
    if entry is None:
        return name
    if "error" in entry:
        return f"{name}: {entry['error']}"
    follows = entry.get("follows")
    why = f"; waits: {follows['why']}" if follows and follows["why"] else ""
    return f"{name}: complete below {entry['complete_below_text']}, known up to {entry['seal_text']}{why}"


def _row(at: int, words: str, time: str, kind: str) -> Markup:
    y = _TOP + at * _ROW
    texts = [tag("text", words, class_=kind or "quiet", x=_PAD, y=y)]
    if time:
        texts.append(tag("text", time, class_=f"time {kind}".strip(), x=WIDTH - _PAD, y=y))
    return joined(texts)


def _input_row(at: int, one: Entry) -> Markup:
    kind = {"lags": "bad", "behind": "late"}.get(one["status"], "")
    consumed = short(one["consumed_text"]) if one["consumed_text"] else "not yet"
    return _row(at, f"\u25b8 {_cut(one['name'], _SHORT)}", consumed, kind)


def _line(edge: Edge, at: Drawn, state: str) -> Markup:
    points = at.lines[edge]
    (x, y), steps = points[0], []
    for to_x, to_y in points[1:]:
        bend = (x + to_x) / 2
        steps.append(f"C {_pair(bend, y)} {_pair(bend, to_y)} {_pair(to_x, to_y)}")
        x, y = to_x, to_y
    kind = {"class_": state} if state in ("behind", "lags") else {}
    path = tag("path", d=f"M {_pair(*points[0])} {' '.join(steps)}", **kind)
    return joined([path, tag("circle", class_=f"end {state}", cx=_figure(x), cy=_figure(y), r=3.5)])


def _loudest_last(item: tuple[Edge, str]) -> tuple[int, str, str]:
    edge, state = item
    return ("hidden", "all", "behind", "lags").index(state), edge.source, edge.target


def _cut(name: str, longest: int) -> str:
    """A name without its middle where it is too long: its end distinguishes it from its neighbours."""
    kept = longest - 1
    return name if len(name) <= longest else f"{name[: kept - kept // 2]}…{name[-(kept // 2) :]}"


def _pair(x: float, y: float) -> str:
    return f"{_figure(x)} {_figure(y)}"


def _figure(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")

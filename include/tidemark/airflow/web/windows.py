"""The page of a collection's windows: the picture that `tidemark windows --plot` draws of some, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.airflow.web.choice import LASTS, LEAST, MOST, TOKEN, Choice, key_of, token_of
from tidemark.airflow.web.inline import inline
from tidemark.airflow.web.markup import Markup, joined, tag
from tidemark.airflow.web.page import Page, document, table
from tidemark.api.excerpt import Excerpt, Gap, Wanted, excerpt, keys_between
from tidemark.api.opened import OpenCollection
from tidemark.api.picture import Drawn, numbers_among, svg
from tidemark.api.windowed import windows_of
from tidemark.arrow.rows.plain import plain_values
from tidemark.arrow.rows.schema import arrow_type, key_column_of
from tidemark.arrow.windows import CLOSED, FINAL, FIRST_KNOWN, LAST_CHANGED, REVISION
from tidemark.definition.windows.explained import explained_windows
from tidemark.errors import InvalidUsage, plain_line
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Column, ColumnType
from tidemark.model.instant import format_instant
from tidemark.model.key import Key
from tidemark.model.window.windows import WINDOW_END, WINDOW_START
from tidemark.model.wording import counted
from tidemark.plan.excerpt import A_LOOK

DAY = 86_400_000_000
STRETCHES = (("a day", DAY), ("a week", 7 * DAY), ("30 days", 30 * DAY))
KEYS = 30
"""Keys that are listed at once."""
KEY_LENGTH = 40
"""Characters that are shown of one."""


@dataclass(frozen=True)
class _Seen:
    """What the page shows: some windows, by what they are drawn, and the choice they belong to."""

    state: Arrangement
    choice: Choice
    value: str
    found: Excerpt

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.state.collection.key[: len(self.found.windows.by)]

    @property
    def end(self) -> int:
        """Behind the last window that is shown, or that could be."""
        rows = self.found.rows
        if self.choice.upper is not None or not rows.num_rows:
            return self.state.complete_below if self.choice.upper is None else self.choice.upper
        return int(rows.column(WINDOW_START)[-1].cast(pa.int64()).as_py()) + 1

    @property
    def in_time(self) -> bool:
        """Whether windows begin at times, not at numbers."""
        return self.state.collection.type_of(WINDOW_START) is ColumnType.TIMESTAMP


def windows_page(opened: OpenCollection, choice: Choice) -> Page:
    """The page. Raises InvalidUsage for a choice that there is not, and what reading the collection raises."""
    windows, name = windows_of(opened.state.collection), opened.name
    title = f"Windows of {name}"
    what, *_ = explained_windows(windows)
    heading = [tag("h1", "Windows of ", tag("a", name, href=f"../{name}")), tag("p", what, class_="quiet")]
    others = tag("p", tag("a", "all collections", href="../../"), class_="quiet")
    if not opened.state.seal:
        return document(title, *heading, tag("p", "No window has closed yet: nothing is sealed."), others, linked=True)
    if masked := _masked(opened):
        said = tag("p", f"No window is shown: {masked} is masked.")
        return document(title, *heading, said, others, linked=True)
    seen = _seen(opened, choice)
    content = [_choices(opened, seen)]
    content += [_picture(seen), _table(seen)] if seen.found.rows.num_rows else [tag("p", _none(opened, seen))]
    return document(title, *heading, *content, others, linked=True)


def _masked(opened: OpenCollection) -> str:
    """What hides all windows: a masked column that they are by, or that each of their values is masked."""
    windows, masked = windows_of(opened.state.collection), opened.state.collection.masked
    by = [name for name in windows.by if name in masked]
    return by[0] if by else "" if any(one.name not in masked for one in windows.aggregates) else "all of their values"


def _seen(opened: OpenCollection, choice: Choice) -> _Seen:
    windows, masked = windows_of(opened.state.collection), opened.state.collection.masked
    names = [one.name for one in windows.aggregates if one.name not in masked]
    numbers = [name for name in numbers_among(windows, opened.schema) if name in names]
    value = choice.value or (numbers or names)[0]
    if value not in names:
        raise InvalidUsage(f"{value!r} is no aggregate of {opened.name}")
    if choice.last not in LASTS:
        raise InvalidUsage(f"{choice.last} windows are not offered; there are {', '.join(map(str, LASTS))}")
    wanted = Wanted(choice.last, key_of(choice.key), choice.lower, choice.upper)
    return _Seen(opened.state, choice, value, excerpt(opened, wanted, value, A_LOOK))


def _choices(opened: OpenCollection, seen: _Seen) -> Markup:
    masked = seen.state.collection.masked
    choice, names = seen.choice, [one.name for one in seen.found.windows.aggregates if one.name not in masked]
    lines = [("what", [tag("b", name) if name == seen.value else choice.link(name, value=name) for name in names])]
    if seen.columns:
        lines.append((", ".join(one.name for one in seen.columns), list(_keys(opened, seen))))
    lines.append(("how many", [choice.link(f"the last {last}", last=last) for last in LASTS]))
    lines.append(("when", list(_when(seen))))
    return tag("section", joined(_line(*line) for line in lines if line[1]), class_="choices")


def _line(name: str, links: Sequence[Markup]) -> Markup:
    return tag("p", tag("span", name, class_="quiet"), *(joined([" ", link]) for link in links))


def _keys(opened: OpenCollection, seen: _Seen) -> Iterator[Markup]:
    """Links to keys, and to those that are between them and are not listed."""
    choice, chosen = seen.choice, seen.found.key
    listed = keys_between(opened, Gap(key_of(choice.above), key_of(choice.below)), KEYS, A_LOOK)
    yield choice.link("all", key="", above="", below="")
    if chosen is not None and chosen not in listed:
        yield tag("b", _called(seen.columns, chosen))
    for one in listed:
        if isinstance(one, Gap):
            yield _chosen_by(choice, "…", above=token_of(one.above), below=token_of(one.below))
        elif one == chosen:
            yield tag("b", _called(seen.columns, one))
        else:
            yield _chosen_by(choice, _called(seen.columns, one), key=token_of(one))
    if not listed:
        yield tag("span", "(none between)", class_="quiet")


def _chosen_by(choice: Choice, text: str, **tokens: str) -> Markup:
    """A link, unless a key is too long for an address."""
    return tag("span", text) if max(map(len, tokens.values())) > TOKEN else choice.link(text, **tokens)


def _called(columns: Sequence[Column], key: Key) -> str:
    """A key as people have it."""
    typed = (key_column_of([scalar], arrow_type(one.type)) for one, scalar in zip(columns, key, strict=True))
    cells = (plain_values(value)[0] for value in typed)
    text = plain_line(", ".join("null" if cell is None else str(cell) for cell in cells)) or "(empty)"
    return text if len(text) <= KEY_LENGTH else f"{text[: KEY_LENGTH - 1]}…"


def _when(seen: _Seen) -> Iterator[Markup]:
    """Links to stretches of time, and from what is shown on to what is before it and behind it."""
    choice, found = seen.choice, seen.found
    if seen.in_time:
        for called, length in STRETCHES:
            yield from _moved(choice, called, seen.end - length, seen.end)
    if found.earlier is not None:
        yield choice.link("‹ earlier", upper=found.earlier)
    elif choice.lower is not None and choice.upper is not None:
        length = choice.upper - choice.lower
        yield from _moved(choice, "‹ earlier", choice.lower - length, choice.lower)
        yield from _moved(choice, "later ›", choice.upper, choice.upper + length)
    if choice.lower is not None or choice.upper is not None:
        yield choice.link("the newest", lower=None, upper=None)


def _moved(choice: Choice, text: str, lower: int, upper: int) -> Iterator[Markup]:
    if LEAST <= lower < upper <= MOST:
        yield choice.link(text, lower=lower, upper=upper)


def _picture(seen: _Seen) -> Markup:
    """The same picture as in a shell, of these windows; or why there is none."""
    found, name = seen.found, seen.found.collection
    try:
        drawn = svg(Drawn(found, found.windows, f"as known at {format_instant(found.time)}"), seen.value)
    except InvalidUsage as error:
        return tag("section", tag("p", f"No picture: {error}", class_="quiet"))
    title = f"{counted(found.rows.num_rows, 'window')} of {name}, as high as {seen.value}; the table has the same"
    return tag("section", tag("div", inline(drawn, title), class_="picture scroll"))


def _table(seen: _Seen) -> Markup:
    """What is drawn, the newest first."""
    rows = seen.found.rows
    columns = {name: plain_values(rows.column(name)) for name in rows.column_names}
    shown = [
        *([plain_line(str(value), TOKEN) for value in columns[one.name]] for one in seen.columns),
        *(_times(columns[name]) for name in (WINDOW_START, WINDOW_END)),
        [plain_line(value, TOKEN) if isinstance(value, str) else value for value in columns[seen.value]],
        list(map(_state_of, columns[CLOSED], columns[FINAL])),
        list(map(_corrected, columns[REVISION], columns[LAST_CHANGED])),
        _times(columns[FIRST_KNOWN]),
    ]
    header = [*(one.name for one in seen.columns), "from", "to", seen.value, "state", "corrected", "shown since"]
    return tag("section", tag("h3", _about(seen)), table(header, list(zip(*shown, strict=True))[::-1]), class_="wide")


def _times(values: Sequence[Any]) -> list[Markup]:
    return [tag("time", value) for value in values]


def _state_of(closed: bool, final: bool) -> str:
    return "final" if final else "closed" if closed else "open"


def _corrected(revision: int, last: str | None) -> Markup:
    if not revision:
        return tag("span", "")
    return tag("span", f"{counted(revision, 'time')}, last ", tag("time", last), class_="marked")


def _about(seen: _Seen) -> str:
    count, choice = counted(seen.found.rows.num_rows, "window"), seen.choice
    if seen.found.key is not None and seen.columns and not choice.key:
        return f"{count}; there are more keys than one page shows, so these belong to the first key"
    return f"{count}, the last of those that were asked for" if seen.found.earlier is not None else count


def _none(opened: OpenCollection, seen: _Seen) -> str:
    choice, state = seen.choice, opened.state
    if choice.key or choice.lower is not None or choice.upper is not None:
        return "There is no window of that key and time."
    if waiting := sum(batch.rows for batch in (*state.ahead, *state.pending)):
        return f"No window has closed yet; {counted(waiting, 'row')} of windows that are open {_wait(waiting)} for it."
    return "The collection is empty: it has no window."


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"

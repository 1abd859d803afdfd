"""What is wrong about the windows of a collection file in themselves, before anything is known of their input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemark.config.document import Loc
from tidemark.config.windows import AggregateSection, WindowsSection
from tidemark.config.windows_kinds import KIND_SECTIONS
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration, parse_duration
from tidemark.model.window.kinds import AlignedKind, WindowKind
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

MOST_WINDOWS = 10_000
"""Windows that a row may be in, each of which it is a row of while they are computed."""

MOST_LENGTH = parse_duration("20000000d")
"""Some 54,000 years: what is not longer is below 2^61 µs, and may be added to any time of a calendar."""


def problem(section: WindowsSection | None, aggregates: Mapping[str, AggregateSection]) -> tuple[Loc, str] | None:
    """What is wrong about windows in themselves, and where; None if nothing is."""
    if section is None:
        wrong = "aggregates need windows; write windows: {on: ..., tumbling: 1h}" if aggregates else ""
        return (("aggregates",), wrong) if wrong else None
    return next(_problems(section, aggregates), None)


def _problems(section: WindowsSection, aggregates: Mapping[str, AggregateSection]) -> Iterator[tuple[Loc, str]]:
    kinds = section.kinds
    if len(kinds) > 1:
        yield ("windows", kinds[1]), f"windows are {' and '.join(kinds)}; keep one kind"
    policies = section.late.model_fields_set
    if len(policies) != 1:
        yield ("windows", "late"), "write one policy: reemit, {reemit: {max_lateness: 3d}}, discard, or next_window"
    if not aggregates:
        yield ("windows",), "the windows have no aggregates; write aggregates: {rows: count}"
    for name, one in aggregates.items():
        try:
            one.aggregate(name)
        except InvalidUsage as error:
            yield ("aggregates", name), f"aggregates: {error}"
    yield from _named_twice(section, aggregates)
    for at, name in enumerate(section.by):
        if name.lower() == section.on.lower():
            yield ("windows", "by", at), f"windows are on {section.on} and by {name}: remove it from by"
    try:
        windows = section.windows(aggregates)
    except InvalidUsage as error:
        field = next((field for field in ("grace", "late") if str(error).startswith(field)), kinds[0] if kinds else "")
        yield ("windows", field), str(error)
        return
    # sqlglot: loaded where a definition is, and for no other file.
    from tidemark.definition.windows.checked import check_expressions

    try:
        check_expressions(windows)
    except InvalidUsage as error:
        yield tuple(str(error).partition(":")[0].split(".")), str(error)
    if wrong := _too_many(windows.kind):
        yield ("windows", kinds[0]), wrong
    yield from _too_long(windows, kinds[0])


def _too_long(windows: Windows, kind: str) -> Iterator[tuple[Loc, str]]:
    """Lengths by which no window of a row could be computed."""
    section = KIND_SECTIONS[kind]
    lengths: dict[Loc, int | None] = {
        ("windows", kind, name): getattr(windows.kind, section.attributes[name]) for name in section.lengths
    }
    lengths[("windows", "grace")] = windows.grace
    lengths[("windows", "late", "reemit", "max_lateness")] = windows.max_lateness
    for loc, length in lengths.items():
        if length is not None and length > MOST_LENGTH:
            called, shown, most = ".".join(map(str, loc)), format_duration(length), format_duration(MOST_LENGTH)
            yield loc, f"{called}: {shown} is too long; it may be {most}"


def _too_many(kind: WindowKind) -> str:
    """What is wrong of windows that are as many as rows are to become."""
    many, which = kind.crowd if isinstance(kind, AlignedKind) else (0, "")
    return f"a row is in {many:,} {which}; it may be in {MOST_WINDOWS:,}" if many > MOST_WINDOWS else ""


def _named_twice(section: WindowsSection, aggregates: Mapping[str, AggregateSection]) -> Iterator[tuple[Loc, str]]:
    """Names that SQL takes for one: it knows no difference of case."""
    bounds, by = (WINDOW_START, WINDOW_END), [name.lower() for name in section.by]
    for at, name in enumerate(section.by):
        if by[at] in bounds:
            yield ("windows", "by", at), f"every window has a column {by[at]} of its own; call the input's otherwise"
        if by[at] in by[:at]:
            yield ("windows", "by", at), f"column {name} is named twice in by"
    seen = {*bounds, *by}
    for name in aggregates:
        if name.lower() in seen:
            yield ("aggregates", name), f"windows have a column {name.lower()} already; call the aggregate otherwise"
        seen.add(name.lower())

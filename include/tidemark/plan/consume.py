"""How far the inputs of a derived collection can be consumed together.

Of an input can be used what is in its trace and has passed its gates: up to `upper`. Below `complete` no on-time row is
missing of that; an input that has *ended* gets none, ever. The least of these is W: as far as that all inputs are
complete. One that is at W is consumed whole, up to `upper`, with what was learned late; one that is ahead to W, so that
nothing of it is used that others do not know yet.

**Diamonds.** Where two inputs rest on one landed collection, a *root*, both must have consumed it equally far: else a
row of it would come by one and not by the other. How far a derived input had is known of the frontiers that it
recorded, so it is consumed to one of these; a landed one that is a root itself is consumed as far as the others
consumed it. Where they do not agree, the input that is behind is waited for, or they meet at an earlier W.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Landed
from tidemark.model.derived import Consumed, Consumption, Root
from tidemark.model.frontier import EMPTY
from tidemark.model.instant import format_instant


@dataclass(frozen=True)
class InputState:
    """An input by the name the definition calls it, and its state at a version; None: it was never created."""

    name: str
    state: Arrangement | None
    version: int


@dataclass(frozen=True)
class Usable:
    """What of an input can be used: all below `upper`, which is complete below `complete` (EMPTY: it has ended).
    `frontiers` are those it recorded, oldest first, if it is derived; of a landed one there are none."""

    name: str
    version: int
    state: Arrangement
    upper: int
    complete: int
    frontiers: tuple[Consumption, ...] = ()

    @property
    def ended(self) -> bool:
        return self.complete == EMPTY

    @property
    def is_derived(self) -> bool:
        return self.state.collection.is_derived

    @property
    def distinguishes_instants(self) -> bool:
        """Whether it holds more between two frontiers than it did at the earlier one."""
        return self.state.event_times_from < EMPTY

    @property
    def known_complete(self) -> int:
        """As `complete`; of one that has ended, where that was."""
        return min(self.state.complete_below, self.upper) if self.ended else self.complete

    @property
    def begins(self) -> int:
        """From where on its history distinguishes times, be it that not all of them can be read."""
        return max(self.state.function.floor, self.state.collection.start)

    def recorded(self, upper: int) -> Consumption | None:
        """The newest frontier it recorded at or below `upper`."""
        return next((frontier for frontier in reversed(self.frontiers) if frontier.upper <= upper), None)

    def complete_at(self, complete: int) -> Consumption | None:
        """The newest frontier it recorded at which it was complete to `complete` at most."""
        return next((frontier for frontier in reversed(self.frontiers) if frontier.complete_below <= complete), None)

    def roots(self, upper: int) -> tuple[Root, ...]:
        """The landed collections below it, as far as consumed by what it holds below `upper`."""
        if not self.is_derived:
            return (Root(self.name, upper, self.state.incarnation),)
        frontier = self.recorded(upper)
        return frontier.roots if frontier else ()

    @property
    def root_names(self) -> frozenset[str]:
        """The landed collections below it, at any frontier it recorded."""
        if not self.is_derived:
            return frozenset({self.name})
        return frozenset(root.collection for frontier in self.frontiers for root in frontier.roots)

    def readable(self, upper: int) -> bool:
        """Whether it can be read as of `upper` - 1."""
        return 0 < upper <= self.upper and self.state.function.keeps(upper - 1)

    def consumed(self, upper: int) -> Consumed:
        """What is recorded of having consumed it up to `upper`."""
        return Consumed(self.name, upper, self.version, self.state.incarnation, self.roots(upper))


@dataclass(frozen=True)
class Waits:
    """Nothing can be consumed yet: `laggard` is the input to wait for, `reason` says what of it is missing.

    `holds` are to be placed on inputs meanwhile, each (input, since): what is readable now must stay so until then.
    """

    laggard: str
    reason: str
    holds: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Meeting:
    """Inputs that can be consumed together, each up to its frontier; together they are complete below `complete`
    (EMPTY: all have ended)."""

    complete: int
    uppers: tuple[tuple[Usable, int], ...]


def usable(source: InputState) -> Usable | Waits:
    """What of an input can be used; Waits if nothing can."""
    state = source.state
    if state is None:
        return Waits(
            source.name, f"{source.name} was never created, or was dropped; `tidemark init` creates it from its file"
        )
    upper = state.certified_trace_upper
    frontiers = tuple(consumption for consumption in state.consumptions if consumption.upper <= upper)
    if upper == 0 or (state.collection.is_derived and not frontiers):
        missing = "its trace has passed no gate" if state.trace else "nothing of it is drained"
        return Waits(source.name, f"{source.name} cannot be read yet: {missing}")
    complete = EMPTY if _has_ended(state, upper) else min(state.complete_below, upper)
    return Usable(source.name, source.version, state, upper, complete, frontiers)


def _has_ended(state: Arrangement, upper: int) -> bool:
    origin = state.collection.origin
    if isinstance(origin, Landed):
        end = origin.end
        return end is not None and state.complete >= end <= state.complete_below <= upper
    consumed = state.consumed
    return consumed is not None and consumed.ended and consumed.upper <= upper


def laggard(state: Arrangement, inputs: Sequence[Usable]) -> Waits | None:
    """Who keeps what other inputs of a derived collection have beyond from being consumed, where nothing is to do: the
    one that is complete less far, or has consumed another one less far; None if nothing is left."""
    consumed = state.consumed
    more = [
        source
        for source in inputs
        if (entry := consumed.of(source.name) if consumed else None) and entry.upper < source.upper
    ]
    for ahead in more:
        for other in inputs:
            root = next((landed for landed in other.roots(other.upper) if landed.collection == ahead.name), None)
            if other.is_derived and root is not None and root.upper < ahead.upper:
                reached, latest = format_instant(root.upper), format_instant(ahead.upper)
                return Waits(other.name, f"{other.name} has consumed {ahead.name} to {reached}, known is {latest}")
    least = min(inputs, key=lambda source: source.complete, default=None)
    if not more or least is None or least.complete == EMPTY or least in more:
        return None
    ahead = max(more, key=lambda source: source.upper)
    return Waits(
        least.name,
        f"{least.name} is complete below {format_instant(least.known_complete)}, "
        f"{ahead.name} below {format_instant(ahead.known_complete)}",
    )


def meeting(inputs: Sequence[Usable], complete: int, floors: dict[str, int]) -> Meeting | Waits:
    """The inputs where they are complete below `complete` together, none below its floor; else why not."""
    names = Counter(name for source in inputs for name in source.root_names)
    shared = {name for name, count in names.items() if count > 1}
    all_ended = all(source.ended for source in inputs)
    uppers: dict[str, int] = {}
    for source in inputs:
        upper = _upper(source, complete, floors.get(source.name, 0), all_ended)
        if isinstance(upper, Waits):
            return upper if upper.laggard else _as_far_as(inputs, source, upper.reason)
        uppers[source.name] = upper
    _pin(inputs, uppers, complete, floors, shared)
    if torn := next(_torn(inputs, uppers, shared), None):
        return torn
    for source in inputs:
        if not source.readable(uppers[source.name]):
            return _unreadable(inputs, source, uppers[source.name])
    return Meeting(complete, tuple((source, uppers[source.name]) for source in inputs))


def _upper(source: Usable, complete: int, floor: int, all_ended: bool) -> int | Waits:
    """How far one input is consumed: a derived one always to a frontier that it recorded, as only there is it known how
    far it had consumed what is below it. Between two it holds the answer of the earlier one, so that is the same; but
    row by row it holds every instant, and can be used only where one of them is as complete as the others."""
    whole = source.complete == complete
    if source.ended:
        # What has ended is all known, so that others may refer to it at any time; but where all have ended their own
        # past is what is asked for.
        whole = not all_ended or complete >= source.known_complete
    if source.upper < floor:
        return Waits(
            source.name,
            f"{source.name} was consumed to {format_instant(floor)}, and has passed its gates to "
            f"{format_instant(source.upper)} only",
        )
    if not source.is_derived:
        return source.upper if whole else max(floor, complete)
    frontier = source.recorded(source.upper) if whole else source.complete_at(complete)
    if frontier is None or (not whole and source.distinguishes_instants and frontier.complete_below < complete):
        return Waits("", f"{source.name} recorded no frontier at which it was complete to {format_instant(complete)}")
    return max(floor, frontier.upper)


def _pin(
    inputs: Sequence[Usable], uppers: dict[str, int], complete: int, floors: dict[str, int], shared: set[str]
) -> None:
    """A landed input that others rest on is consumed as far as they consumed it, where it can be."""
    for source in inputs:
        if source.is_derived or source.name not in shared:
            continue
        others = [root for other in inputs if other.is_derived for root in other.roots(uppers[other.name])]
        frontiers = {root.upper for root in others if root.collection == source.name}
        least = max(floors.get(source.name, 0), source.known_complete if complete == EMPTY else complete)
        if len(frontiers) == 1 and least <= min(frontiers) <= source.upper:
            uppers[source.name] = min(frontiers)


def _torn(inputs: Sequence[Usable], uppers: dict[str, int], shared: set[str]) -> Iterator[Waits]:
    """The inputs that consumed a root less far than others did: those that are behind by now, where any are."""
    for name in sorted(shared):
        met = _consumed(inputs, uppers, name)
        if len({root for root, _ in met}) < 2:
            continue
        now = _consumed(inputs, {source.name: source.upper for source in inputs}, name)
        consumed = sorted((root.upper, who) for root, who in (met if len({root for root, _ in now}) < 2 else now))
        (least, behind), (most, ahead) = consumed[0], consumed[-1]
        if least == most:
            both = f"{behind} and {ahead} have consumed {name} to {format_instant(least)}"
            yield Waits(behind, f"{both}, but two collections of that name: it was created again")
            continue
        yield Waits(
            behind,
            f"{behind} has consumed {name} to {format_instant(least)}, {ahead} to {format_instant(most)}; "
            "they are used together where both have consumed it equally far",
        )


def _consumed(inputs: Sequence[Usable], uppers: dict[str, int], root: str) -> list[tuple[Root, str]]:
    """How far the inputs that rest on a root have consumed it, by what they hold below their `uppers`."""
    return [
        (landed, source.name)
        for source in inputs
        for landed in source.roots(uppers[source.name])
        if landed.collection == root
    ]


def _unreadable(inputs: Sequence[Usable], source: Usable, upper: int) -> Waits:
    since, wanted = format_instant(source.state.since), format_instant(upper - 1)
    waits = _as_far_as(inputs, source, f"{source.name} is readable from {since} on, and would be read as of {wanted}")
    return replace(waits, holds=tuple((each.name, each.state.since) for each in inputs))


def _as_far_as(inputs: Sequence[Usable], source: Usable, reason: str) -> Waits:
    """What is wrong with an input that is ahead: the least complete one is to come nearer."""
    laggard = min(inputs, key=lambda each: each.complete)
    return Waits(laggard.name, reason if laggard is source else f"{reason}, as far as {laggard.name} is complete")

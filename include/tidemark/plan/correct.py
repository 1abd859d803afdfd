"""What `correct` computes next: how far each input of a derived collection is consumed, and what is recorded of it.

A run asks again and again until there is nothing to do. Each answer is one commit. Where much was missed, catching up
stops at each time that `stops` names (the ends of the inputs' coarsest intervals), so that collections over the same
inputs, whenever they run, have frontiers in common, at which those who use them together can meet (plan/consume.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection
from tidemark.model.derived import Consumption
from tidemark.model.frontier import EMPTY, CompactionFunction
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.computed_as import computed_as, differs
from tidemark.plan.consume import InputState as InputState
from tidemark.plan.consume import Meeting, Usable, meeting, usable
from tidemark.plan.consume import Waits as Waits

HOLD = "derived."
"""What the holds of derived collections on their inputs begin with; the collection's name follows."""
FIRST = "first build"


@dataclass(frozen=True)
class InputRange:
    """What is read of one input, as its state of `version` has it: as known at `upto`, and, where only changes are
    looked at, those after `after` up to it (None: `upto` alone is readable, all is read). `consumed` is how far it was
    consumed by what the collection holds (None: that is no answer to what is asked).

    `hold_before` is where the hold on the input is to be before anything is read, `hold_after` once that is committed.
    """

    name: str
    version: int
    after: int | None
    upto: int
    hold_before: int
    hold_after: int
    consumed: int | None = None


@dataclass(frozen=True)
class CorrectRequest:
    """Bring a derived collection to the frontier of `consumption`, whose `batch` is for the executor to name.

    Rows are written with times of `interval` (those ahead of it keep theirs): from the frontier before to the new one.
    `previous` is the consumption that D holds the answer of (None: none, D is empty). `whole` says why all has to be
    computed ("": what changed is enough). `moves`: to be committed even if no row differs; else there is nothing to
    commit then. `checks`: what D holds is compared with what it should hold, at the inputs as consumed before.
    `since` is the greatest of the inputs: event times below were merged. `readable` says, of a first build, what can be
    read of it.
    """

    consumption: Consumption
    previous: Consumption | None
    interval: Interval
    inputs: tuple[InputRange, ...]
    whole: str
    moves: bool
    checks: bool
    since: int
    readable: CompactionFunction

    @property
    def upper(self) -> int:
        """The new frontier."""
        return self.consumption.upper


def hold_name(collection: str) -> str:
    """The name under which a derived collection holds its inputs."""
    return f"{HOLD}{collection}"


def plan_correct(
    state: Arrangement,
    inputs: Sequence[InputState],
    *,
    stops: Sequence[int] = (),
    until: int | None = None,
    check: bool = False,
    whole: bool = False,
) -> CorrectRequest | Waits | None:
    """The next frontier of a derived collection, at most complete below `until`; None if its inputs have nothing new.

    `check` compares what is stored with what should be, at the inputs as they were consumed; `whole` computes all, also
    where nothing is new. Waits where an input is to be waited for: it is behind another on a root they share, is not
    readable as far back as the others need, or is not complete to `until`.

    Raises InvalidUsage if the inputs are not those of the declaration, or the collection is not derived.
    """
    derived = state.collection.derived
    if tuple(source.name for source in inputs) != derived.inputs:
        raise InvalidUsage(
            f"collection {state.collection.name} has the inputs {', '.join(derived.inputs)}, given were "
            f"{', '.join(source.name for source in inputs)}"
        )
    usables = []
    for source in inputs:
        ready = usable(source)
        if isinstance(ready, Waits):
            return ready
        usables.append(ready)
    return _Plan(state, tuple(usables), tuple(sorted(stops)), until, whole).next(check)


def history_lost(state: Arrangement, inputs: Sequence[InputState]) -> tuple[int, int]:
    """How many of the frontiers that `history` asks a first build for cannot be built, and how many these are.

    Where one cannot be, retention has merged what an input knew there.
    """
    usables = [ready for source in inputs if isinstance(ready := usable(source), Usable)]
    landed = [source.state.collection.start for source in usables if not source.is_derived]
    history, plan = state.collection.derived.history, _Plan(state, tuple(usables), (), None, False)
    if not history or not landed:
        return 0, 0
    stops = _multiples(history, max(landed), max(source.known_complete for source in usables))
    return sum(not plan._merged.keeps(stop - 1) for stop in stops), len(stops)


def _multiples(step: int, after: int, below: int) -> range:
    return range((after // step + 1) * step, below, step)


@dataclass(frozen=True)
class _Plan:
    """One question: the state, what of its inputs can be used, and what was asked for."""

    state: Arrangement
    inputs: tuple[Usable, ...]
    stops: tuple[int, ...]
    until: int | None
    asked_whole: bool

    @property
    def previous(self) -> Consumption | None:
        return self.state.consumed

    @property
    def complete(self) -> int:
        """W: as far as all inputs are complete, and as was asked for; EMPTY where all have ended."""
        least = min(source.complete for source in self.inputs)
        if least == EMPTY and self.until is not None and self.until >= max(each.known_complete for each in self.inputs):
            return EMPTY
        return least if self.until is None else min(least, self.until)

    @property
    def floor(self) -> int:
        """What D said it is complete below: that is never lowered."""
        return max(self.state.complete_below, self.previous.complete_below if self.previous else 0)

    def next(self, check: bool) -> CorrectRequest | Waits | None:
        if check and self.previous and self._may_be_compared():
            return self._again(self.previous)
        if self.until is not None and self.until <= self.floor:
            # What was asked for is there. What has to be recomputed is recomputed for today's completeness.
            return replace(self, until=None).next(check) if self.asked_whole or self._restart_reason() else None
        if self.complete < self.floor:
            return self._behind(self.floor)
        refused: Waits | None = None
        for complete in self._candidates():
            met = meeting(self.inputs, complete, self._floors())
            if isinstance(met, Meeting):
                request = self._request(met)
                return request if request.moves or self.asked_whole or check else self._nothing()
            refused = refused or met
        return refused or self._nothing()

    def _candidates(self) -> Iterator[int]:
        """The completeness to try, in order: the first stop, and what is beyond it; then what the inputs recorded."""
        bound = max(source.known_complete for source in self.inputs) if self.complete == EMPTY else self.complete
        lower = self.floor if self.previous else 0
        yield from (stop for stop in self._stops(bound) if lower < stop < bound)
        yield self.complete
        recorded = {frontier.complete_below for source in self.inputs for frontier in source.frontiers}
        yield from sorted((time for time in recorded if lower < time < bound), reverse=True)

    def _stops(self, bound: int) -> Sequence[int]:
        """Where catching up stops. A first build stops where its owner wants history to begin, and nowhere else."""
        history = self.state.collection.derived.history
        if not history or not (self.previous is None or self.previous.building):
            return self.stops if self.previous else ()
        begins = self.floor if self.previous else max(source.begins for source in self.inputs)
        merged = self._merged
        return [stop for stop in _multiples(history, begins, bound) if merged.keeps(stop - 1)]

    @property
    def _merged(self) -> CompactionFunction:
        """What the inputs together keep of what was known at a time.

        One that ended before others is read as it is now, and one by groups holds its earlier answer between two
        frontiers: neither bounds anything.
        """
        all_ended = all(source.ended for source in self.inputs)
        functions = [
            source.state.function
            for source in self.inputs
            if (all_ended or not source.ended) and (source.distinguishes_instants or not source.is_derived)
        ]
        try:
            return reduce(CompactionFunction.then, functions, CompactionFunction())
        except InvalidUsage:  # they keep instants that have nothing in common
            return CompactionFunction(max(function.since for function in functions))

    def _readable(self, upper: int) -> CompactionFunction:
        """What can be read of a collection that is built up to `upper` first.

        There, and of what follows only what its inputs keep, as between two such instants they do not distinguish what
        was known.
        """
        merged = self._merged
        if merged.since < upper or not merged.keeps(upper - 1):
            return CompactionFunction(upper - 1)
        at = next(at for at, rung in enumerate(merged.rungs) if rung.lower < upper)
        oldest = replace(merged.rungs[at], lower=upper - merged.rungs[at].interval)  # the bucket that ends with it
        return CompactionFunction(merged.since, (*merged.rungs[:at], oldest))

    def _floors(self) -> dict[str, int]:
        """How far each input was consumed, unless it is another one by now, or another definition asks."""
        if self.previous is None or self._restart_reason():
            return {}
        return {consumed.input: consumed.upper for consumed in self.previous.inputs}

    def _restart_reason(self) -> str:
        """Why what was consumed says nothing of what is to be consumed; "" if it does."""
        previous = self.previous
        if previous is None:
            return FIRST
        if why := differs(previous.definition, self.state.collection, self._collections):
            return why
        for source in self.inputs:
            entry = previous.of(source.name)
            if entry is None or entry.incarnation != source.state.incarnation:
                return f"{source.name} was created again"
        return ""

    @property
    def _computed_as(self) -> str:
        return computed_as(self.state.collection, self._collections)

    @property
    def _collections(self) -> list[Collection]:
        return [source.state.collection for source in self.inputs]

    def _lost(self) -> str:
        """Why changes since the last consumption cannot be read; "" if they can."""
        for source in self.inputs:
            entry = self.previous.of(source.name) if self.previous else None
            if entry and not source.state.function.keeps(entry.upper - 1):
                since = format_instant(source.state.since)
                return (
                    f"{source.name} was consumed to {format_instant(entry.upper)}, its history is merged below {since}"
                )
        return ""

    def _may_be_compared(self) -> bool:
        """Whether the inputs can be read once more as they were consumed."""
        pairs = [(source, self.previous.of(source.name) if self.previous else None) for source in self.inputs]
        return not self._restart_reason() and all(
            was is not None and source.readable(was.upper) for source, was in pairs
        )

    def _again(self, previous: Consumption) -> CorrectRequest:
        """The same once more, at the next instant."""
        uppers = tuple((source, consumed.upper) for source in self.inputs if (consumed := previous.of(source.name)))
        upper = self.state.complete + 1
        consumption = replace(self._consumption(Meeting(self.floor, uppers), upper), complete_below=self.floor)
        consumption = replace(consumption, ended=previous.ended, building=previous.building)
        return self._asked(consumption, uppers, whole="checked", moves=False, checks=True)

    def _request(self, met: Meeting) -> CorrectRequest:
        last = self.state.complete
        going = [upper for source, upper in met.uppers if not source.ended] or [upper for _, upper in met.uppers]
        complete = [] if met.complete == EMPTY else [met.complete]
        consumption = self._consumption(met, max([*complete, *going, last + 1]))
        why = self._restart_reason() or self._lost() or ("asked for" if self.asked_whole else "")
        return self._asked(consumption, met.uppers, whole=why, moves=self._moves(met), checks=False)

    def _moves(self, met: Meeting) -> bool:
        """Whether anything is known now that was not: then it is recorded, though no row may differ."""
        previous = self.previous
        if previous is None or self._restart_reason():
            return True
        ends = met.complete == EMPTY and not previous.ended
        further = met.complete != EMPTY and met.complete > self.floor
        return ends or further or any(upper > self._floors()[source.name] for source, upper in met.uppers)

    def _consumption(self, met: Meeting, upper: int) -> Consumption:
        ended = met.complete == EMPTY
        return Consumption(
            upper,
            upper if ended else met.complete,
            tuple(source.consumed(to) for source, to in met.uppers),
            self._computed_as,
            ended=ended,
            building=self._builds(met.complete),
        )

    def _builds(self, complete: int) -> bool:
        """Whether a first build has more of its history ahead."""
        history, previous = self.state.collection.derived.history, self.previous
        return bool(history) and (previous is None or previous.building) and complete < self.complete

    def _asked(
        self,
        consumption: Consumption,
        uppers: Sequence[tuple[Usable, int]],
        *,
        whole: str,
        moves: bool,
        checks: bool,
    ) -> CorrectRequest:
        consumed = self._floors()
        floors = {} if whole else consumed
        return CorrectRequest(
            consumption,
            self.previous,
            Interval(self.state.recorded_below, consumption.upper),
            tuple(
                replace(_range(source, upper, floors.get(source.name)), consumed=consumed.get(source.name))
                for source, upper in uppers
            ),
            whole,
            moves,
            checks,
            max(source.state.since for source in self.inputs),
            CompactionFunction() if self.previous else self._readable(consumption.upper),
        )

    def _behind(self, wanted: int) -> Waits:
        """The input that is least complete."""
        laggard = min(self.inputs, key=lambda source: source.complete)
        return Waits(
            laggard.name,
            f"{laggard.name} is complete below {format_instant(laggard.complete)} only, "
            f"{self.state.collection.name} is to be below {format_instant(wanted)}",
        )

    def _nothing(self) -> Waits | None:
        """Nothing is new: an answer, unless more was asked for than there is."""
        return self._behind(self.until) if self.until is not None and self.complete < self.until else None


def _range(source: Usable, upper: int, consumed: int | None) -> InputRange:
    """What is read of an input that was consumed before up to `consumed` (None: or might as well not have been)."""
    since = source.state.since
    before = upper if consumed is None else min(upper, consumed)
    after = None if consumed is None else consumed - 1
    return InputRange(source.name, source.version, after, upper - 1, max(since, before - 1), max(since, upper - 1))

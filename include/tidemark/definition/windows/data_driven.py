"""Data-driven windows, sliding ones and sessions: their rows say where they begin and end, which no select does."""

from __future__ import annotations

from dataclasses import replace

from tidemark.definition.analysed import analysed
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.recipe import InputShape, Recipe, SessionPlan, SlidingPlan
from tidemark.definition.windows.checked import Checked, checked
from tidemark.definition.windows.projected import at_hand
from tidemark.definition.windows.select import in_windows, select_of
from tidemark.definition.windows.sessions import in_sessions, sessions_without_queries
from tidemark.definition.windows.sliding import slid, slid_without_queries
from tidemark.model.derived import Mode, Refresh
from tidemark.model.expression import Projection
from tidemark.model.window.kinds import Session, Sliding
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

_WHY = "{} depend on the rows around them, so those near a change are computed again"


def analysed_data_driven(windows: Windows, shape: InputShape, refresh: Refresh = Refresh.AUTO) -> Recipe:
    """What to compute for sliding windows or sessions over an input of this shape. Raises InvalidUsage as
    `aligned.analysed_windows`."""
    assert isinstance(windows.kind, Sliding | Session)
    declared = checked(windows, shape)
    instants = analysed(select_of(declared), [in_windows(declared)])  # these columns, and their types
    own = ", ".join(f"`{name}`" for name in instants.columns)  # nothing is subtracted, so nothing need be hidden
    query = f"SELECT {own} FROM ({instants.whole})" if instants.hidden else instants.whole
    whole = replace(instants, mode=Mode.BY_KEY, whole=query, by_key=None, hidden=(), used=None)
    rule, projection, left = _without_queries(
        declared, slid(declared) if isinstance(windows.kind, Sliding) else in_sessions(declared)
    )
    found = replace(
        whole,
        windowed=rule,
        projection=projection,
        left_to_spark=left,
        why=(f"not by row: {_WHY.format('sliding windows' if isinstance(rule.kind, Sliding) else 'sessions')}",),
        key=(*windows.by, WINDOW_START, WINDOW_END),
        happened=declared.happened,
    )
    if refresh is Refresh.WHOLE:
        return replace(found, mode=Mode.WHOLE, why=("its file says refresh: whole",))
    return found


def _without_queries(
    declared: Checked, rule: SlidingPlan | SessionPlan
) -> tuple[SlidingPlan | SessionPlan, Projection | None, str]:
    """The rule, which also says what rows at hand need instead of queries, how rows are projected then, and why not."""
    try:
        projected, projection = at_hand(declared)
        if isinstance(rule, SlidingPlan):
            return slid_without_queries(rule, projected), projection, ""
        return sessions_without_queries(rule, projected), projection, ""
    except LeftToSpark as why:
        return rule, None, str(why)

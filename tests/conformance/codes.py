"""The vectors' words for errors, and ours: their codes are a vocabulary of their own."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.plain import frontier
from tests.support.rules import Asked
from tidemark.errors import Corruption
from tidemark.model.invariants import Invariant

CODES: dict[str, str] = {
    Invariant.BATCHES_NAMED_ONCE: r"duplicate_\w*(batch|key|blob)\w*",
    Invariant.SEQUENCES_ASCEND: r"\w*(seqno|sequence|unsealed)_(overlap|order)\w*",
    Invariant.SINCE_OF_THE_STATE: r"(trace_)?batch_since_\w+"
    r"|trace_since_\w+|since_(past|beyond|ahead_of|after|exceeds)_\w+",
    Invariant.UPPER_BELOW_THE_SEAL: r"\w+_seal|seal_\w*(trace|upper|batch)\w*",
    Invariant.NEIGHBOURS_TOUCH: r"trace_\w*(sequence|contiguous|gap|overlap|mismatch)\w*",
    Invariant.LEVELS_DO_NOT_RISE: r"\w*levels?(_\w+)?",
    Invariant.INTERVAL: r"invalid_(interval|desc\w*)|(empty|zero_width)_interval",
    Invariant.TIME_BOUNDS: r"invalid_(time|ts)_bounds|(time|ts)_bounds_\w+",
    Invariant.NOT_EMPTY: r"empty_\w*(batch|updates)|\w*batch_empty|no_updates",
    Invariant.TIMES_FROM_LOWER: r"(update|ts|time)_(before|below)_lower",
    Invariant.TIMES_TO_UPPER_OR_SINCE: r"(update|ts|time)_(at_or_)?"
    r"(past|after|beyond|above|not_before)_(upper|since)\w*",
    Invariant.SORTED: r"\w*(sorted|out_of_order)\w*",
    Invariant.CONSOLIDATED: r"\w*(consolidated|duplicate)\w*",
    Invariant.NO_ZERO_DIFFS: r"\w*(zero_diff|diff_zero)\w*",
    Invariant.SEAL_ADVANCES: r"seal_regression",
    Invariant.SINCE_ADVANCES: r"since_regression",
    Invariant.ABOVE_THE_SEAL: r"(write|update|ts|time)\w*_(before|below|behind)_seal\w*|write_(at|to)_sealed\w*",
    Invariant.ABOVE_THE_TRACE: r"(?!seal)\w*(before|below|behind)_\w*(trace|lower)\w*",
    Asked.SEQUENCE_CONTINUES: r"\w*(seqno|sequence)_(gap|mismatch)",
    Asked.RANGE: r"invalid_(interval|range|bounds|read|snapshot)\w*|read_\w+"
    r"|\w*(inverted|reversed)\w*|upper_\w*_lower",
    Invariant.MERGE_OF_NEIGHBOURS: r"compact_(?!since)\w+",
    Invariant.MERGE_KEEPS_SINCE: r"compact_since_regression",
}
"""How the vectors may call the breaking of each rule."""


def check_error(expected: dict[str, Any], error: Corruption) -> None:
    """Raise unless the error is the one expected: the rule by its code, and the values.

    A value under a name we do not use must be among those of the rule all the same.
    """
    code = expected["code"]
    if not error.rule or not re.fullmatch(CODES.get(error.rule, ""), code):
        raise AssertionError(f"expected error {code}, found rule {error.rule or 'none'!r}: {error}")
    found = {name: frontier(value) if isinstance(value, int) else value for name, value in error.params}
    for name, value in expected.items():
        if name != "code" and (found[name] != value if name in found else value not in found.values()):
            raise AssertionError(f"expected error {code} with {name} {value}, found {found}: {error}")

"""The vectors' words for errors, and ours: their codes are a vocabulary of their own."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.plain import frontier
from tidemark.errors import Corruption
from tidemark.model.invariants import Rule

CODES: dict[Rule, str] = {
    Rule.INTERVAL: r"invalid_(interval|desc\w*)|(empty|zero_width)_interval",
    Rule.TIME_BOUNDS: r"invalid_(time|ts)_bounds|(time|ts)_bounds_\w+",
    Rule.NOT_EMPTY: r"empty_(unsealed_)?batch|unsealed_batch_empty|no_updates",
    Rule.SEQUENCES_ASCEND: r"(unsealed_)?(seqno|sequence)_(overlap|order)\w*|unsealed_overlap",
    Rule.SEQUENCE_CONTINUES: r"(unsealed_)?(seqno|sequence)_(gap|mismatch)",
    Rule.ABOVE_THE_TRACE: r"\w*(before|below|behind)_(trace|trace_upper|ts_lower|unsealed_lower)",
    Rule.ABOVE_THE_SEAL: r"\w*(before|below|behind)_seal(ed)?\w*|write_(at|to)_sealed\w*",
    Rule.SEAL_ADVANCES: r"seal_regression",
    Rule.SINCE_ADVANCES: r"since_regression",
    Rule.RANGE: r"invalid_(range|bounds|read|snapshot)\w*|range_\w+|read_\w*(bounds|range)\w*",
    Rule.TRACE_CONTINUES: r"trace_(append_\w+|lower_mismatch|upper_mismatch)",
    Rule.NEIGHBOURS_TOUCH: r"trace_(sequence_broken|gap|overlap|not_contiguous)",
    Rule.LEVELS_DO_NOT_RISE: r"(trace_)?levels?_\w+",
    Rule.SINCE_OF_THE_STATE: r"(trace_)?batch_since_\w+|(trace_)?since_(past|beyond|ahead_of|after|exceeds)_\w+",
    Rule.UPPER_BELOW_THE_SEAL: r"(trace_)?(batch_|upper_)?(past|beyond|after|exceeds)_seal|(batch|trace)_upper_\w*seal",
    Rule.TIMES_FROM_LOWER: r"(update|ts|time)_(before|below)_lower",
    Rule.TIMES_TO_UPPER_OR_SINCE: r"(update|ts|time)_(at_or_)?(past|after|beyond|above|not_before)_(upper|since)",
    Rule.SORTED: r"(updates?_)?(unsorted|not_sorted|out_of_order)\w*",
    Rule.CONSOLIDATED: r"(updates?_)?(unconsolidated|not_consolidated|duplicate\w*)",
    Rule.NO_ZERO_DIFFS: r"(update_)?(with_)?(zero_diff|diff_zero)\w*",
    Rule.MERGE_OF_NEIGHBOURS: r"compact_(not_\w+|non_\w+|gap|overlap|interval\w*|boundary\w*|mismatch\w*|sequence\w*)",
    Rule.MERGE_KEEPS_SINCE: r"compact_since_regression",
    Rule.BATCHES_NAMED_ONCE: r"duplicate_(batch_)?key\w*",
}
"""How the vectors may call the breaking of each rule."""


def check_error(expected: dict[str, Any], error: Corruption) -> None:
    """Raise unless the error is the one expected: the rule by its code, and the values.

    A value under a name we do not use must be among those of the rule all the same.
    """
    code = expected["code"]
    if not error.rule or not re.fullmatch(CODES.get(Rule(error.rule), ""), code):
        raise AssertionError(f"expected error {code}, found rule {error.rule or 'none'!r}: {error}")
    found = {name: frontier(value) if isinstance(value, int) else value for name, value in error.params}
    for name, value in expected.items():
        if name != "code" and (found[name] != value if name in found else value not in found.values()):
            raise AssertionError(f"expected error {code} with {name} {value}, found {found}: {error}")

"""The vectors' words for errors, and ours: their codes are a vocabulary of their own."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.plain import frontier
from tidemark.errors import Corruption
from tidemark.model.invariants import Rule

CODES: dict[Rule, str] = {
    Rule.BATCHES_NAMED_ONCE: r"duplicate_\w*(batch|key|blob)\w*",
    Rule.SEQUENCES_ASCEND: r"(unsealed_)?(seqno|sequence)_(overlap|order)\w*|unsealed_overlap",
    Rule.SINCE_OF_THE_STATE: r"(trace_)?batch_since_\w+|trace_since_\w+|since_(past|beyond|ahead_of|after|exceeds)_\w+",
    Rule.UPPER_BELOW_THE_SEAL: r"\w*(past|beyond|after|exceeds|ahead_of)_seal|\w*upper_\w*seal|seal_be(fore|hind)_\w+",
    Rule.NEIGHBOURS_TOUCH: r"trace_(sequence_broken|not_contiguous|(append_|lower_|upper_)?(gap|overlap|mismatch))",
    Rule.LEVELS_DO_NOT_RISE: r"\w*levels?(_\w+)?",
    Rule.INTERVAL: r"invalid_(interval|desc\w*)|(empty|zero_width)_interval",
    Rule.TIME_BOUNDS: r"invalid_(time|ts)_bounds|(time|ts)_bounds_\w+",
    Rule.NOT_EMPTY: r"empty_(unsealed_batch|batch|updates)|unsealed_batch_empty|no_updates",
    Rule.TIMES_FROM_LOWER: r"(update|ts|time)_(before|below)_lower",
    Rule.TIMES_TO_UPPER_OR_SINCE: r"(update|ts|time)_(at_or_)?(past|after|beyond|above|not_before)_(upper|since)\w*",
    Rule.SORTED: r"(updates?_)?(unsorted|not_sorted|out_of_order)(_updates?)?",
    Rule.CONSOLIDATED: r"(updates?_)?(unconsolidated|not_consolidated|duplicates?)(_updates?)?",
    Rule.NO_ZERO_DIFFS: r"(updates?_)?(with_)?(zero_diff|diff_zero)(_updates?)?",
    Rule.SEAL_ADVANCES: r"seal_regression",
    Rule.SINCE_ADVANCES: r"since_regression",
    Rule.ABOVE_THE_SEAL: r"(write|update|ts|time)\w*_(before|below|behind)_seal\w*|write_(at|to)_sealed\w*",
    Rule.ABOVE_THE_TRACE: r"\w*(before|below|behind)_(trace|trace_upper|ts_lower|unsealed_lower)",
    Rule.SEQUENCE_CONTINUES: r"(unsealed_)?(seqno|sequence)_(gap|mismatch)",
    Rule.RANGE: r"invalid_(interval|range|bounds|read|snapshot)\w*|read_\w+|(inverted|reversed)_\w+|upper_before_lower",
    Rule.MERGE_OF_NEIGHBOURS: r"compact_(?!since)\w+",
    Rule.MERGE_KEEPS_SINCE: r"compact_since_regression",
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

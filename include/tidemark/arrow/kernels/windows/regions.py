"""Ranges of time that are put together where they meet: what of a group a change can reach.

An example: stored are sessions [0, 10] and [12, 20], and what changed reaches from 9 to 13. All three meet, so the
region is [0, 20]. A session [30, 40] meets none of them and is in no region, as nothing of it changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.arrow.rows.columns import Bools, Ints


class Regions(NamedTuple):
    """Regions in order of group and time, no two of a group meeting: both ends belong to them."""

    group: Ints
    first: Ints
    upto: Ints


def regions(group: Ints, first: Ints, upto: Ints, changed: Bools) -> Regions:
    """The regions of the ranges [first, upto] of groups that `changed`, with all ranges that they meet, and what these
    meet in turn. Groups are numbered from 0."""
    if not len(group):
        return Regions(group, first, upto)
    order = np.lexsort((upto, first, group))
    group, first, upto, changed = group[order], first[order], upto[order], changed[order]
    at = np.flatnonzero(begins(group, first, upto))
    kept = np.logical_or.reduceat(changed, at)
    return Regions(group[at][kept], first[at][kept], np.maximum.reduceat(upto, at)[kept])


def begins(group: Ints, first: Ints, upto: Ints) -> Bools:
    """Which of some ranges, in order of group and of where they begin, meets none of its group before it."""
    ends, places = np.unique(upto, return_inverse=True)
    # As groups ascend, the largest end so far of a group is that of its number and its end's place in order.
    reached = ends[np.maximum.accumulate(group * len(ends) + places) % max(1, len(ends))]
    found = np.ones(len(group), bool)
    found[1:] = (group[1:] != group[:-1]) | (first[1:] > reached[:-1])
    return found


def in_regions(group: Ints, at: Ints, found: Regions) -> Bools:
    """Which instants of groups are in one of their regions. A group may be -1: that of no region."""
    if not len(found.group):
        return np.zeros(len(group), bool)
    # By group, and by how many regions of whatever group have begun, regions are in order, and rows find theirs.
    begun, places = np.unique(found.first, return_inverse=True)
    width = len(begun) + 1
    mine = group * width + np.searchsorted(begun, at, "right")
    nearest = np.searchsorted(found.group * width + places + 1, mine, "right") - 1
    before = nearest >= 0
    nearest = np.maximum(nearest, 0)
    return np.asarray(before & (found.group[nearest] == group) & (at <= found.upto[nearest]))

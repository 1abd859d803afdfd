"""What the environment says of a deployment to all that read it: Airflow, shells and programs."""

from __future__ import annotations

import os

from tidemark.model.instant import parse_duration
from tidemark.plan.day import READY_WITHIN


def ready_within() -> int:
    """How long after an interval's end its files are expected, in microseconds: TIDEMARK_READY_WITHIN, as 12h or 30m.

    Raises:
        InvalidUsage: It is no duration.
    """
    text = os.environ.get("TIDEMARK_READY_WITHIN")
    return parse_duration(text) if text else READY_WITHIN

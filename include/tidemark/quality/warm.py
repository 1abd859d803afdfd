"""Imported by a process whose forks run gates: what each of them would do for the first time is done here, once."""

from __future__ import annotations

import pyarrow.acero

from tidemark.arrow.kernels import inspect
from tidemark.quality import evaluate, rows
from tidemark.quality.validation import Validator

__all__ = ("evaluate", "inspect", "pyarrow", "rows")

Validator().prepare()

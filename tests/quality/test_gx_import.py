"""Great Expectations is imported without what pandas frames do not need, and judges them as the whole package does."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.quality

JUDGE = """
import sys
import pandas as pd
from tidemark.quality import prepared
from tidemark.quality.expectations import OwnerExpectation
from tidemark.quality.validation import Validator

frame = pd.DataFrame({{"amount": [1, 2, 30], "code": ["AB", "cd", None]}})
asked = [
    prepared.Asked("expect_column_values_to_be_between", {{"column": "amount", "min_value": 0, "max_value": 10}}, "a"),
    prepared.Asked("expect_column_values_to_match_regex", {{"column": "code", "regex": "^[A-Z]+$"}}, "b"),
    prepared.Asked("expect_column_mean_to_be_between", {{"column": "amount", "min_value": 0, "max_value": 12}}, "c"),
]
{before}
print([(bool(one.success), one.result) for one in prepared.evaluate(asked, frame, "COMPLETE")])
"""
LEFT_OUT = """
left_out = ("pyspark", "sqlalchemy", "boto3", "scipy.stats", "altair", "scipy")
print([name for name in left_out if name in sys.modules])
"""
EVERYTHING_AFTERWARDS = """
import altair, scipy.stats, sqlalchemy, pyspark
from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as uses
print(uses.stats.entropy([0.5, 0.5]) == scipy.stats.entropy([0.5, 0.5]), type(uses.alt.Chart).__name__)
"""
AGAIN_FOR_SPARK = """
import great_expectations
from tidemark.quality.gx_import import is_lean
lean = sys.modules["great_expectations"]
whole = prepared.great_expectations(for_spark=True)
from great_expectations.compatibility import pyspark
print(is_lean(lean), is_lean(whole), bool(pyspark.pyspark), prepared.great_expectations(for_spark=False) is whole)
print([(bool(one.success), one.result) for one in prepared.evaluate(asked, frame, "COMPLETE")])
"""


def run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_what_pandas_frames_do_not_need_is_left_out_and_nothing_is_judged_otherwise() -> None:
    """And what was left out is there for whoever imports it later."""
    lean = run(JUDGE.format(before="") + LEFT_OUT + EVERYTHING_AFTERWARDS)
    whole = run(JUDGE.format(before="prepared.great_expectations(for_spark=True)"))
    assert lean == [*whole, "[]", "True type"]


def test_for_a_spark_frame_it_is_imported_again_with_its_engine() -> None:
    before, lean_and_whole, after = run(JUDGE.format(before="") + AGAIN_FOR_SPARK)
    assert (before, lean_and_whole) == (after, "True False True True")

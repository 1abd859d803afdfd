"""Values to compare with are taken exactly as they are, or refused; also those that were in an array of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemark.api.values import value_of
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("value", "of", "expected"),
    [
        *((np.True_, pa.bool_(), True), (np.bool_(False), pa.bool_(), False), (np.int8(7), pa.int64(), 7)),
        *((np.float32(1.5), pa.float64(), 1.5), (np.str_("x"), pa.string(), "x"), ("-7", pa.int64(), -7)),
        *(("1e3", pa.float64(), 1000.0), ("TRUE", pa.bool_(), True)),
    ],
    ids=repr,
)
def test_what_is_a_value_of_its_column(value: Any, of: pa.DataType, expected: Any) -> None:
    assert value_of("v", value, of).as_py() == expected


@pytest.mark.parametrize(
    ("value", "of"),
    [
        *((np.True_, of) for of in (pa.int64(), pa.float64(), pa.decimal128(5, 2), pa.string(), pa.binary())),
        *((text, of) for of in (pa.int64(), pa.float64()) for text in (" 1", "1 ", "1_0", "\u0663", "")),
        *((text, pa.timestamp("us", "UTC")) for text in ("20130102093000", "201301020930")),
        *((1, pa.bool_()), (np.int8(1), pa.bool_()), (np.float64(1), pa.int64())),
    ],
    ids=repr,
)
def test_what_is_nearly_one_is_refused(value: Any, of: pa.DataType) -> None:
    with pytest.raises(InvalidUsage, match=r"column v is of type .* is no value of it"):
        value_of("v", value, of)

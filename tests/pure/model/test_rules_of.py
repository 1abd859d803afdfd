"""The fingerprint of what decides whether a source file can be taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.world import collection
from tidemark.model.collection import Column, ColumnType, DecimalType, Envelope, ValueType
from tidemark.model.ledger import rules_of

pytestmark = pytest.mark.pure
TYPES: tuple[ValueType, ...] = (*ColumnType, DecimalType(12, 2))


def test_a_fingerprint_that_was_recorded_stays_what_it_is():
    """Collections without a decimal were judged before; another fingerprint would read all their bad files again."""
    every_type = tuple(Column(f"a_{of}", of) for of in ColumnType)
    assert rules_of(collection()) == "320c26d34a17f195"
    assert rules_of(replace(collection(Envelope.UPSERT), value=every_type)) == "005cd6f7611912af"


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_every_type_has_a_fingerprint_of_its_own(of: ValueType):
    as_value, as_key = (Column("v", of),), (Column("k", of),)
    others = {rules_of(replace(collection(), value=(Column("v", other),))) for other in TYPES if other != of}
    assert rules_of(replace(collection(), value=as_value)) not in others
    if of is not ColumnType.FLOAT:
        assert rules_of(replace(collection(), key=as_key)) != rules_of(replace(collection(), value=as_value))
    read_only = replace(
        collection(), origin=replace(collection().landed, inputs=(Column("t", ColumnType.INT), *as_value))
    )
    assert rules_of(read_only)


def test_another_precision_is_another_verdict():
    narrow, wide = (replace(collection(), value=(Column("v", DecimalType(12, of)),)) for of in (2, 3))
    assert rules_of(narrow) != rules_of(wide)

from dataclasses import replace

import pytest

from demo.derived import in_trace
from support.derivations import derived
from support.drawn import trace_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Gate
from tidemark.model.derived import Consumed, Consumption
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.records import Certificate

pytestmark = pytest.mark.pure

D = derived("d", "a")


def consumption(upper: int) -> Consumption:
    return Consumption(upper, upper, (Consumed("a", upper, 1, "i"),), D.derived.fingerprint)


def test_what_was_consumed_can_be_read_once_it_is_in_the_trace() -> None:
    """A demo on a busy machine met runs of `correct` that had committed, and whose rows were still to be sealed."""
    batch = trace_batch(["b", "[0][20][0]", "1", "0"])
    followed = Arrangement(
        D,
        ingested=IntervalSet((Interval(0, 40),)),
        complete_below=20,
        seal=20,
        trace=(batch,),
        consumptions=(consumption(20),),
    )
    corrected = replace(followed, consumptions=(consumption(20), consumption(30)))
    assert not in_trace(followed)
    certified = (Certificate(batch.id, D.suite(Gate.TRACE)),)
    followed, corrected = (replace(state, certificates=certified) for state in (followed, corrected))
    assert in_trace(followed)
    assert not in_trace(corrected)
    assert not in_trace(replace(corrected, seal=30, complete_below=30))
    assert not in_trace(Arrangement(D))

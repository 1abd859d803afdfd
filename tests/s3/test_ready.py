"""Waiting for a bucket is like waiting for a folder."""

from __future__ import annotations

import time

import pytest

from support.stores import Stores
from tests.dags.test_ready import event_of, hurried
from tidemark.airflow.ready import LandingTrigger

__all__ = ["hurried"]

pytestmark = pytest.mark.s3


@pytest.mark.parametrize(("ready", "lands"), [("exists", "1/a.csv"), ("_SUCCESS", "1/_SUCCESS")])
def test_what_lands_in_a_bucket_is_seen(stores: Stores, hurried: None, ready: str, lands: str) -> None:
    landing = stores()
    patterns = {"one": f"{landing.url}/1/*.csv"}
    trigger = LandingTrigger(patterns, ready, landing.url, since=0.5, until=time.time() + 60)
    assert event_of(trigger, lambda: landing.create(lands, b"1")) == {"ready": True, "since": 0.5}


def test_a_bucket_that_answers_nothing_is_waited_for_too(
    stores: Stores, hurried: None, environment: pytest.MonkeyPatch
) -> None:
    trigger = LandingTrigger(
        {"one": "s3://no-such-bucket/1/*.csv"}, "exists", "s3://no-such-bucket", 0.5, time.time() + 1
    )
    event = event_of(trigger)
    assert event["ready"] is False
    assert "no-such-bucket" in event["missing"][1]
    assert event["missing"][2], "it does not say what went wrong"

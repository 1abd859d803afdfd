"""Looking at a landing again and again: what is due, when, why, and what is not reported twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.feed import DAY, NOON, START, fed, row
from tidemark.arrow.rows.memory import Memory
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries import arrivals
from tidemark.jobs.queries.arrivals import AGAIN, open_interval, pause_of
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.batching.cutting import Batching, WatchRate
from tidemark.model.batching.length import Adaptive, Fixed
from tidemark.model.batching.memory import Budget
from tidemark.model.batching.rate import SECOND
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.interval import Interval

pytestmark = pytest.mark.pure
ROW = row()


def test_bytes_cut_and_what_was_reported_is_not_reported_again_until_it_is_counted(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=3 * len(ROW), settle=0))
    feed.land(NOON, 2)
    assert feed.look(NOON) is None
    feed.land(NOON + SECOND, 1)
    assert feed.look(NOON + SECOND) == ("bytes",)
    assert feed.look(NOON + 2 * SECOND) is None
    # A file that comes while a run is about the others is a batch of its own.
    feed.land(NOON + 3 * SECOND, 1)
    assert feed.look(NOON + 3 * SECOND) is None
    # Who was to ingest them died.
    assert feed.look(NOON + SECOND + AGAIN) == ("bytes",)


END = START + DAY


def test_event_time_that_passes_the_end_of_the_interval_cuts_once(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(watermark=True, settle=0))
    feed.land(NOON, events=(NOON, END, END + DAY))
    assert feed.look(NOON) is None, "a file has rows before the end"
    feed.land(NOON + SECOND, events=(END, END + 1))
    assert feed.begun_again().look(NOON + SECOND) == ("watermark",)
    taken = feed.take(NOON + SECOND)
    assert (taken["rows"], taken["cut"]["reason"]) == (5, "watermark")
    feed.land(NOON + 2 * SECOND, events=(END + 2,))
    assert feed.look(NOON + 2 * SECOND) is None, "it has passed before"
    assert feed.begun_again().look(NOON + 2 * SECOND) is None, "so says the log"
    feed.land(END, day="2100-01-02", events=(END + DAY,))
    assert feed.look(END) == ("watermark",), "the next interval has an end of its own"


@pytest.mark.parametrize("events", [(NOON, END + 365 * DAY), (END + 365 * DAY, NOON), (NOON,), (END - 1,)])
def test_no_row_far_in_the_future_and_no_late_row_passes_the_end(tmp_path: Path, events: tuple[int, ...]) -> None:
    feed = fed(tmp_path, Batching(watermark=True, settle=0))
    for second in range(5):
        feed.land(NOON + second * SECOND, events=events)
        assert feed.look(NOON + second * SECOND) is None


def test_who_was_to_ingest_what_passed_died(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(watermark=True, settle=0))
    feed.land(NOON, events=(END,))
    assert [feed.look(NOON + late) for late in (0, SECOND, AGAIN)] == [("watermark",), None, ("watermark",)]


def test_a_file_that_cannot_be_decoded_has_no_event_time(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(watermark=True, settle=0))
    for name, content in {"a.jsonl": "{", "b.jsonl": "", "c.jsonl": '{"k": 1}\n'}.items():
        Path(feed.land(NOON, name=name)).write_text(content)
    assert feed.look(NOON) is None
    feed.land(NOON + SECOND, events=(END,))
    assert feed.look(NOON + SECOND) == ("watermark",)


def test_what_somebody_asks_for_says_what_else_applied_and_how_long_it_was_open(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=1, count=2, settle=0))
    feed.land(NOON)
    interval = Interval(START, END)
    root, at = str(feed.world.landing), NOON + 60 * SECOND
    done = feed.world.run(lambda job: ingest(job, interval, landing_root=root, cut=Cut(Reason.EXPLICIT, at=at)))
    assert (done["cut"]["reason"], done["cut"]["also"]) == ("bytes", ["explicit"])


def test_a_share_of_the_memory_for_buffers_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte of JSON lines is estimated to take a byte, decoded: 80 of 100 do."""
    monkeypatch.setattr(arrivals, "memory", lambda: Memory(Budget(10 * len(ROW))))
    feed = fed(tmp_path, Batching(memory=0.8, bytes=9 * len(ROW), settle=0))
    feed.land(NOON, 7)
    assert feed.look(NOON) is None
    feed.land(NOON + SECOND, 1)
    due = feed.arrivals.look(NOON + SECOND)
    assert due is not None
    assert (due.cut.reason, due.cut.also) == (Reason.MEMORY, ())
    done = feed.ingested(due)
    assert (done["rows"], done["keys"], done["open_seconds"]) == (8, 2, 1)
    assert done["cut_text"].startswith("memory; up to 2 keys; ")
    feed.land(NOON + 2 * SECOND, 9)
    assert feed.look(NOON + 2 * SECOND) == ("memory", "bytes")


def test_a_count_goes_by_the_rows_of_what_was_read_last(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(Fixed(60 * SECOND), count=10, settle=0))
    feed.land(NOON, 50)
    assert feed.look(NOON) is None, "nobody knows how many rows that is"
    assert feed.take(NOON + 60 * SECOND)["rows"] == 50
    assert feed.look(NOON + 61 * SECOND) is None
    feed.land(NOON + 62 * SECOND, 9)
    assert feed.look(NOON + 62 * SECOND) is None
    feed.land(NOON + 63 * SECOND, 1)
    assert feed.look(NOON + 63 * SECOND) == ("count",)


def test_a_rate_that_changes_cuts_once(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(rate_change=WatchRate(1.0, 100 * SECOND, 3_600 * SECOND), settle=0))
    feed.land(NOON - 3_600 * SECOND, 1)
    feed.arrivals._rows_per_byte = 1 / len(ROW)
    cuts = {}
    for second in range(0, 300, 5):
        feed.land(NOON + second * SECOND, 1 if second < 200 else 10)
        if due := feed.arrivals.look(NOON + second * SECOND):
            cuts[second] = (str(due.cut.reason), str(due.cut.direction))
    assert len(cuts) <= 2, "hysteresis"
    assert ("rate_change", "up") in cuts.values()


def test_a_steady_feed_is_not_cut_by_its_rate_when_its_rows_become_known(tmp_path: Path) -> None:
    """How many rows came before the first file was counted is found out afterwards; they are no quiet time."""
    watch = WatchRate(0.5, 100 * SECOND, 3_600 * SECOND)
    feed = fed(tmp_path, Batching(Fixed(60 * SECOND), rate_change=watch, settle=0))
    cuts = []
    for second in range(0, 400, 5):
        feed.land(NOON + second * SECOND, 2)
        if due := feed.arrivals.look(NOON + second * SECOND):
            cuts.append((second, str(due.cut.reason), due.cut.rate))
            feed.ingested(due)
    assert [(second, reason) for second, reason, _ in cuts] == [(second, "time") for second in range(60, 400, 60)]
    assert cuts[0][2] is None, "nobody knows yet how many rows a byte is"
    assert [rate for *_, rate in cuts[1:]] == [pytest.approx(0.4, rel=0.1)] * 5


def test_a_young_file_is_not_taken(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=1, settle=10 * SECOND))
    feed.land(NOON)
    assert [feed.look(NOON + second * SECOND) for second in (0, 9, 10)] == [None, None, ("bytes",)]
    growing = feed.land(NOON + 20 * SECOND, name="growing.jsonl")
    assert feed.look(NOON + 29 * SECOND) is None
    feed.land(NOON + 29 * SECOND, 2, name=Path(growing).name)
    assert feed.look(NOON + 31 * SECOND) is None
    assert feed.look(NOON + 39 * SECOND) == ("bytes",)


def test_a_restart_tells_nothing_that_is_counted(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=1, settle=0))
    feed.land(NOON)
    feed.take(NOON)
    again = feed.begun_again()
    assert again.look(NOON + SECOND) is None
    feed.land(NOON + 2 * SECOND)
    assert again.look(NOON + 2 * SECOND) is not None


def test_files_that_vanish_and_a_clock_that_steps_back_are_no_trouble(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(Fixed(60 * SECOND), bytes=10**9, settle=0))
    file = feed.land(NOON)
    assert feed.look(NOON) is None
    Path(file).unlink()
    assert feed.look(NOON + 120 * SECOND) is None, "nothing is left to cut"
    feed.land(NOON + 121 * SECOND)
    assert feed.look(NOON - 3_600 * SECOND) is None
    assert feed.look(NOON - 3_540 * SECOND) is None, "what is from the future is not settled"
    assert feed.look(NOON + 181 * SECOND) == ("time",)
    feed.land(NOON + 10)
    assert feed.look(NOON + 400 * SECOND) == ("time",)
    assert feed.look(NOON + 200 * SECOND) == ("time",), "reported in a future that is over: reported again"


def test_only_the_interval_that_goes_on_is_looked_at(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=1, settle=0))
    feed.land(NOON)
    assert [feed.look(time) for time in (START - 1, NOON + DAY, START + 3 * DAY)] == [None] * 3
    feed.land(NOON + DAY, day="2100-01-02")
    due = feed.arrivals.look(NOON + DAY)
    assert due is not None
    assert due.interval == Interval(START + DAY, START + 2 * DAY)
    assert due.as_dict()["lower"] == "2100-01-02T00:00:00Z"
    # It was read at its end already: what comes now is for who runs it again.
    feed.world.run(lambda job: ingest(job, due.interval, landing_root=str(feed.world.landing), not_over=True))
    feed.land(NOON + DAY + 1, day="2100-01-02")
    assert feed.look(NOON + DAY + SECOND) is None


def test_a_landing_that_is_not_there_is_said(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=1, settle=0))
    feed.world.landing.rmdir()
    with pytest.raises(InvalidUsage, match="does not exist"):
        feed.look(NOON)
    feed.world.landing.mkdir()
    assert feed.look(NOON) is None
    feed.land(NOON)
    assert feed.look(NOON) == ("bytes",)


def test_the_state_is_not_read_while_nothing_comes(tmp_path: Path) -> None:
    feed = fed(tmp_path, Batching(bytes=1, settle=0))
    feed.land(NOON)
    feed.take(NOON)
    assert feed.look(NOON + SECOND) is None  # this one finds that it is counted
    feed.arrivals.log = None  # type: ignore[assignment]
    assert feed.look(NOON + 2 * SECOND) is None


def test_it_is_looked_at_least_as_often_as_a_batch_may_be_cut() -> None:
    assert pause_of(Batching(Adaptive(2 * SECOND, 60 * SECOND, 1))) == 2 * SECOND
    assert pause_of(Batching(Fixed(3_600 * SECOND))) == 5 * SECOND
    assert pause_of(Batching(count=1)) == 5 * SECOND


def test_an_interval_goes_on_from_its_beginning_to_before_its_end(tmp_path: Path) -> None:
    declared = fed(tmp_path, Batching(count=1)).arrivals.collection
    assert open_interval(declared, START) == open_interval(declared, START + DAY - 1) == Interval(START, START + DAY)

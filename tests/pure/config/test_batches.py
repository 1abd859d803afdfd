"""`batches` in collection files: what it becomes, and what is refused at its line."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.model.batching.cutting import SETTLE, Batching, WatchRate
from tidemark.model.batching.length import Adaptive, Fixed
from tidemark.model.instant import parse_duration

pytestmark = pytest.mark.pure

FILE = """\
name: counts
key: [id]
columns: {id: int}
start: 2013-01-01
time: arrival
source: {path: "/data/*.json", format: json, envelope: append}
"""


def loaded(tmp_path: Path, batches: str, file: str = FILE) -> Batching | None:
    path = tmp_path / "counts.yaml"
    path.write_text(f"{file}{batches}\n")
    return load(path).landed.batching


def micros(text: str) -> int:
    return parse_duration(text)


@pytest.mark.parametrize(
    ("written", "batching"),
    [
        ("", None),
        ("batches: {adaptive: {}}", Batching(Adaptive(micros("10s"), micros("5m"), 100_000))),
        (
            "batches: {adaptive: {min: 30s, max: 1h, target: 5}, count: 7, bytes: 8, rate_change: 0.5, settle: 0s}",
            Batching(Adaptive(micros("30s"), micros("1h"), 5), 7, 8, WatchRate(0.5), settle=0),
        ),
        (
            "batches: {fixed: 5m, rate_change: {by: 2, window: 1m, cool_down: 2m}}",
            Batching(Fixed(micros("5m")), rate_change=WatchRate(2.0, micros("1m"), micros("2m")), settle=SETTLE),
        ),
        ("batches: {count: 1}", Batching(count=1)),
        ("batches: {memory: 0.8}", Batching(memory=0.8)),
    ],
)
def test_what_is_declared(tmp_path: Path, written: str, batching: Batching | None) -> None:
    assert loaded(tmp_path, written) == batching


def test_a_watermark_needs_event_times(tmp_path: Path) -> None:
    timed = FILE.replace("{id: int}", "{id: int, at: timestamp}") + "event_time: {column: at}\n"
    assert loaded(tmp_path, "batches: {watermark: true}", timed) == Batching(watermark=True)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("batches: {memory: 1.5}", "memory is 1.5; it is a share of the available memory, above 0 and at most 1"),
        (
            "batches: {watermark: true}",
            "goes by event times, and rows of collection counts bring none; declare event_time",
        ),
        ("batches: {watermark: false}", "nothing says when a batch is cut"),
        (
            "batches: {}",
            "nothing says when a batch is cut; write adaptive, fixed, count, bytes, memory, watermark or rate_change",
        ),
        ("batches: {settle: 1s}", "nothing says when a batch is cut"),
        ("batches: {count: 0}", "count is 0; it must be 1 or more"),
        ("batches: {bytes: -3}", "bytes is -3; it must be 1 or more"),
        ("batches: {count: 1.5}", "count"),
        ("batches: {count: yes}", "count"),
        (
            "batches: {adaptive: {min: 5m, max: 1m}}",
            "min 5m is longer than max 1m; write a shorter min, or a longer max",
        ),
        ("batches: {adaptive: {min: 0}}", "min is 0s; it must be above 0"),
        ("batches: {adaptive: {target: 0}}", "target is 0 rows; it must be 1 or more"),
        ("batches: {adaptive: {min: 10ms}}", "min is 10ms, and a run alone takes seconds; write 1s or more"),
        ("batches: {adaptive: {maximum: 10m}}", "unknown field 'batches.adaptive.maximum'; did you mean 'max'"),
        ("batches: {fixed: 0}", "fixed is 0s; it must be above 0"),
        ("batches: {fixed: 10ms}", "fixed is 10ms, and a run alone takes seconds"),
        ("batches: {fixed: 1m, adaptive: {}}", "adaptive and fixed both say how long a batch is open; write one"),
        ("batches: {rate_change: 0}", "rate_change is 0; it must be above 0"),
        ("batches: {rate_change: fast}", "'fast' is not one of 0.5, {by: 0.5}"),
        ("batches: {rate_change: .nan}", "rate_change is nan"),
        ("batches: {rate_change: .inf}", "rate_change is inf"),
        ("batches: {rate_change: {by: 1, window: 0}}", "window of a rate is 0s"),
        ("batches: {rate_change: {by: 1, cool_down: 0}}", "cool_down of rate_change is 0s"),
        ("batches: {counts: 3}", "unknown field 'batches.counts'; did you mean 'count'"),
        ("batches: often", "batches"),
        ("batching: {count: 3}", "unknown field 'batching'; did you mean 'batches'"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(tmp_path: Path, written: str, says: str) -> None:
    with pytest.raises(InvalidUsage) as refused:
        loaded(tmp_path, written)
    assert "counts.yaml:7: " in str(refused.value)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("schedule", "written", "says"),
    [
        ("@daily", "{count: 1, settle: 2d}", "settle is 2d, and no interval of schedule @daily is longer than 1d"),
        ("@daily", "{count: 1, settle: 1d}", "it would be over before any of its files is taken; write less"),
        ("@daily", "{count: 1, settle: 23h}", None),
        ("@hourly", "{fixed: 1h}", "fixed is 1h, and no interval of schedule @hourly is longer than 1h"),
        ("@hourly", "{adaptive: {min: 2h, max: 3h}}", "min is 2h, and no interval of schedule @hourly"),
        ("@hourly", "{adaptive: {max: 3h}}", None),
        ("@yearly", "{fixed: 365d}", None),  # 2016 is a leap year
        ("@yearly", "{fixed: 366d}", "no interval of schedule @yearly is longer than 366d"),
        ("*/5 9-17 * * 1-5", "{count: 1, settle: 20h}", None),  # of Friday's last one there are days
        ("*/5 9-17 * * 1-5", "{count: 1, settle: 4d}", "is longer than 2d15h5m"),
        ("nonsense", "{count: 1, settle: 2d}", "'nonsense' is no schedule"),
    ],
)
def test_a_batch_is_a_part_of_an_interval(tmp_path: Path, schedule: str, written: str, says: str | None) -> None:
    file = FILE.replace("start: 2013-01-01", f"start: 2013-01-01T{'09' if '9-' in schedule else '00'}:00:00Z")
    refused = pytest.raises(InvalidUsage, match=f"counts.yaml:[78]: .*{re.escape(says)}") if says else nullcontext()
    with refused:
        loaded(tmp_path, f'schedule: "{schedule}"\nbatches: {written}', file)


def test_what_is_one_whole_is_not_cut(tmp_path: Path) -> None:
    whole = FILE.replace("envelope: append", "envelope: snapshot").replace("time: arrival\n", "")
    with pytest.raises(InvalidUsage, match=r"counts.yaml:6: .*full snapshot is all files of its interval together"):
        loaded(tmp_path, "batches: {count: 1}", whole)
    marked = FILE.replace("append}", "append, ready: {marker: _SUCCESS}}")
    with pytest.raises(InvalidUsage, match=r"counts.yaml:7: ready: \{marker: _SUCCESS\} says .* write ready: exists"):
        loaded(tmp_path, "batches: {count: 1}", marked)

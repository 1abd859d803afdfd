"""`reprocess_for` in collection files: what it becomes, what goes with it, and what is refused with both values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.relanded import relanded
from support.world import collection
from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Envelope, Late
from tidemark.model.evolution import evolved
from tidemark.model.instant import parse_duration
from tidemark.model.retention import Retention, Step

pytestmark = pytest.mark.pure

FILE = """\
name: counts
key: [id]
columns: {id: int}
start: 2013-01-01
time: arrival
source: {path: "/data/*.json", format: json, envelope: append}
"""
DAY = parse_duration("1d")


def loaded(tmp_path: Path, text: str) -> Collection:
    path = tmp_path / "counts.yaml"
    path.write_text(text)
    return load(path)


def test_it_is_a_duration_and_nothing_if_left_out(tmp_path: Path) -> None:
    assert loaded(tmp_path, FILE + "reprocess_for: 30d").landed.reprocess_for == 30 * DAY
    assert loaded(tmp_path, FILE + "reprocess_for: 0").landed.reprocess_for == 0
    assert loaded(tmp_path, FILE).landed.reprocess_for == 0


@pytest.mark.parametrize("written", ["soon", "-1d", "1.5", "[]", "null"])
def test_what_is_no_duration_is_refused_at_its_line(tmp_path: Path, written: str) -> None:
    with pytest.raises(InvalidUsage, match=r"counts.yaml:7: .*reprocess_for"):
        loaded(tmp_path, FILE + f"reprocess_for: {written}")


def test_how_much_a_correction_may_replace_is_a_share_of_what_may_be_corrected(tmp_path: Path) -> None:
    file = FILE + "reprocess_for: 30d\n"
    assert loaded(tmp_path, file).landed.corrected_share is None
    for written in ("0.05", "0", "1", "1.0"):
        assert loaded(tmp_path, f"{file}corrected_share: {written}").landed.corrected_share == float(written)
    for wrong in ("1.5", "-0.1", "5%", "yes", ".nan", "[0.1]"):
        with pytest.raises(InvalidUsage, match=r"counts.yaml:8: .*corrected_share"):
            loaded(tmp_path, f"{file}corrected_share: {wrong}")
    with pytest.raises(InvalidUsage, match=r"counts.yaml:7: .*corrected_share is 0.1, but no file .*reprocess_for"):
        loaded(tmp_path, FILE + "corrected_share: 0.1")


@pytest.mark.parametrize("envelope", ["append", "updates", "upsert"])
def test_files_of_these_envelopes_may_be_corrected(tmp_path: Path, envelope: str) -> None:
    text = FILE.replace("envelope: append", f"envelope: {envelope}{', diff: id' if envelope == 'updates' else ''}")
    assert loaded(tmp_path, text + "reprocess_for: 30d").landed.reprocess_for == 30 * DAY


def test_a_file_that_keeps_less_than_it_corrects_is_refused_at_its_line(tmp_path: Path) -> None:
    text = FILE.replace("append", "upsert") + "retention: [{keep: all, for: 20d}, {keep: 1d}]\nreprocess_for: 30d"
    said = r"counts.yaml:8: .*keeps every time for 20d, reprocess_for 30d with max_lateness 0s needs 30d"
    with pytest.raises(InvalidUsage, match=said):
        loaded(tmp_path, text)


def test_full_snapshots_may_be_corrected_where_the_retention_keeps_as_much(tmp_path: Path) -> None:
    text = FILE.replace("append", "snapshot").replace("time: arrival\n", "") + "reprocess_for: 30d\n"
    assert loaded(tmp_path, text).landed.reprocess_for == 30 * DAY
    with pytest.raises(InvalidUsage, match=r"counts.yaml:\d+: .*for 7d, reprocess_for 30d .* needs 30d; .*for: 30d"):
        loaded(tmp_path, text + "retention: [{keep: all, for: 7d}, {keep: 1d}]\n")


def corrected(envelope: Envelope, days: int, retention: Retention, late: Late | None = None) -> Collection:
    of = collection(envelope)
    landed = relanded(of, late=late or (of.landed.late if envelope is Envelope.SNAPSHOT else Late("discard")))
    return relanded(replace(landed, retention=retention), reprocess_for=days * DAY)


THREE_DAYS = Late("reemit", 3 * DAY)
WEEK = Retention("ladder", steps=(Step(None, 7 * DAY), Step(DAY, None)))


@pytest.mark.parametrize(
    ("envelope", "retention", "late", "days", "said"),
    [
        (Envelope.UPSERT, WEEK, THREE_DAYS, 5, "for 7d, reprocess_for 5d with max_lateness 3d needs 8d; .*for: 8d"),
        (Envelope.DEBEZIUM, WEEK, None, 8, "for 7d, reprocess_for 8d with max_lateness 0s needs 8d"),
        (Envelope.SNAPSHOT, WEEK, None, 30, "for 7d, reprocess_for 30d with max_lateness 0s needs 30d"),
        (Envelope.UPSERT, WEEK, Late("reemit"), 1, "for 7d, reprocess_for 1d with rows of any lateness needs all"),
        (Envelope.UPSERT, Retention("full_merge"), None, 1, "for 0s, reprocess_for 1d"),
        (Envelope.UPSERT, Retention("tiered", keep_recent=9), None, 1, "for 0s, reprocess_for 1d"),
        (Envelope.UPSERT, Retention("time_boundary", interval=DAY), None, 1, "for 0s, reprocess_for 1d"),
    ],
)
def test_a_retention_that_merges_what_may_be_corrected_is_refused(
    envelope: Envelope, retention: Retention, late: Late | None, days: int, said: str
) -> None:
    with pytest.raises(InvalidUsage, match=said):
        corrected(envelope, days, retention, late)
    corrected(envelope, 0, retention, late)
    corrected(envelope, days, Retention(), late)


def test_a_retention_that_keeps_just_what_is_needed_is_fine() -> None:
    corrected(Envelope.UPSERT, 4, WEEK, THREE_DAYS)
    with pytest.raises(InvalidUsage, match="needs 7d1us"):
        relanded(corrected(Envelope.UPSERT, 4, WEEK, THREE_DAYS), reprocess_for=4 * DAY + 1)


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES])
def test_what_is_added_up_may_be_corrected_where_it_was_merged_to(envelope: Envelope) -> None:
    corrected(envelope, 30, Retention("full_merge"), Late("reemit"))


def test_it_may_be_raised_lowered_and_given_up() -> None:
    before = corrected(Envelope.APPEND, 30, Retention())
    for days in (0, 7, 90):
        assert evolved(before, relanded(before, reprocess_for=days * DAY)).landed.reprocess_for == days * DAY

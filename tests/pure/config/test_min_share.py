"""`source.min_share` in collection files: what it becomes, what it is refused for, and whom it has judged again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Gate

pytestmark = pytest.mark.pure

FILE = """\
name: stock
key: [item]
columns: {item: int}
start: 2013-01-01
source:
  path: "/data/*.json"
  format: json
  envelope: %s
  min_share: %s
"""


def loaded(folder: Path, share: str | None, envelope: str = "snapshot", more: str = "") -> Collection:
    path = folder / "stock.yaml"
    text = FILE % (envelope, share) + more
    path.write_text(text if share is not None else text.replace("  min_share: None\n", ""))
    return load(path)


@pytest.mark.parametrize(("written", "share"), [(None, 0.5), ("0", 0), ("0.9", 0.9), ("1", 1)])
def test_it_is_a_share_and_half_if_left_out(tmp_path: Path, written: str | None, share: float) -> None:
    assert loaded(tmp_path, written).min_share == share
    suites = [loaded(tmp_path, each).suite(Gate.UNSEALED) for each in (None, written)]
    assert (suites[0] == suites[1]) == (written is None), "another share is asked again, and none is as it was"


@pytest.mark.parametrize("written", ["1.5", "-0.1", "50%", "yes", ".nan", "[0.1]"])
def test_what_is_no_share_is_refused_at_its_line(tmp_path: Path, written: str) -> None:
    with pytest.raises(InvalidUsage, match=r"stock.yaml:9: .*min_share"):
        loaded(tmp_path, written)


def test_other_envelopes_have_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidUsage, match=r"min_share belongs to the snapshot envelope, not to upsert"):
        loaded(tmp_path, "0.5", "upsert", "time: arrival\n")

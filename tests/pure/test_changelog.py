"""CHANGELOG.md has releases, each says what it means on disk, and the version of the package follows from them."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

import tidemark

TEXT = (Path(__file__).resolve().parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
UNRELEASED, *RELEASES = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]


def test_releases_are_in_order_and_dated() -> None:
    headings = [re.match(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)\n", release) for release in RELEASES]
    assert all(headings)
    found = [(Version(heading[1]), date.fromisoformat(heading[2])) for heading in headings if heading]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("release", [UNRELEASED, *RELEASES], ids=lambda release: release.partition("\n")[0])
def test_each_says_what_it_means_for_what_is_on_disk(release: str) -> None:
    headings = re.findall(r"^### (.+)", release, re.MULTILINE)
    assert headings[-1] == "On-disk format"
    assert set(headings) <= {"Added", "Changed", "Fixed", "Security", "Removed", "On-disk format"}


def test_between_releases_the_version_is_the_next_one() -> None:
    newest = Version(re.findall(r"^\[(.+)\]", RELEASES[0])[0])
    version = Version(tidemark.__version__)
    assert UNRELEASED.startswith("[Unreleased]\n")
    assert version.is_devrelease
    assert Version(version.base_version) > newest

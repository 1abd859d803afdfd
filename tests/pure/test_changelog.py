"""Releases have notes: each says what it means on disk, and the version of the package follows from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.version import Version

import tidemark

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
_, *NOTES, OLDER = re.split(r"^## ", TEXT, flags=re.MULTILINE)
PAGES = sorted((PROJECT / "docs" / "releases").glob("*.md"), key=lambda page: Version(page.stem), reverse=True)
HEADINGS = {"Added", "Changed", "Fixed", "Security", "Removed", "Upgrading", "On-disk format"}


def test_releases_are_listed_from_the_newest_on() -> None:
    headings = [re.match(r"\[(Unreleased|\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?\n", notes) for notes in NOTES]
    assert all(headings)
    released = [heading[1] for heading in headings if heading and heading[1] != "Unreleased"]
    assert len(TEXT.splitlines()) <= 150, "older notes go to docs/releases"
    assert re.findall(r"\[([\d.]+)\]\(docs/releases/\1\.md\)", OLDER) == [page.stem for page in PAGES]
    versions = [Version(name) for name in [*released, *(page.stem for page in PAGES)]]
    assert versions == sorted(set(versions), reverse=True)


@pytest.mark.parametrize("notes", [*NOTES, *(page.read_text(encoding="utf-8") for page in PAGES)], ids=lambda n: n[:12])
def test_each_says_what_it_means_for_what_is_on_disk(notes: str) -> None:
    headings = re.findall(r"^### (.+)", notes, re.MULTILINE)
    assert headings[-1] == "On-disk format"
    assert set(headings) <= HEADINGS


def test_the_version_is_that_of_the_notes_or_the_next_one() -> None:
    newest = [*re.findall(r"^## \[([\d.]+)\]", TEXT, re.MULTILINE), *(page.stem for page in PAGES)][0]
    version = Version(tidemark.__version__)
    if not NOTES[0].startswith("[Unreleased]"):
        assert str(version) == newest
    else:
        assert version.is_devrelease
        assert Version(version.base_version) > Version(newest)

"""What is in a landing: patterns, markers, identities, and links that lead astray."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tidemark.arrow.decode.content import fetch
from tidemark.errors import InvalidUsage, NotReady
from tidemark.model.ledger import SourceFile
from tidemark.storage.landing import MATCHES, Beside, awaited, is_ready, list_sources, open_source, sha256_of, token_of

pytestmark = pytest.mark.pure


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    for name in (
        *("d1/b.csv", "d1/a.csv", "d1/a.txt", "d1/_SUCCESS", "d1/.a.csv.tmp", "d1/_part.csv", "d2/c.csv", "d2/x/e.csv"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def names(root: Path, pattern: str) -> list[str]:
    return [file.path.removeprefix(f"{root}/") for file in list_sources(f"{root}/{pattern}", within=str(root))]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("d1/*.csv", ["d1/a.csv", "d1/b.csv"]),
        ("d1/*", ["d1/a.csv", "d1/a.txt", "d1/b.csv"]),
        ("d1/[b-z].csv", ["d1/b.csv"]),
        ("d1/a.csv", ["d1/a.csv"]),
        ("*/?.csv", ["d1/a.csv", "d1/b.csv", "d2/c.csv"]),
        ("**/*.csv", ["d1/a.csv", "d1/b.csv", "d2/c.csv", "d2/x/e.csv"]),
        ("d2/**", ["d2/c.csv", "d2/x/e.csv"]),
        ("d1/_*.csv", ["d1/_part.csv"]),
        ("d3/*.csv", []),
        ("d1/*.parquet", []),
    ],
)
def test_patterns(root: Path, pattern: str, found: list[str]) -> None:
    assert names(root, pattern) == found


def test_a_file_is_identified_by_size_and_change_token(root: Path) -> None:
    (file,) = list_sources(f"{root}/d1/a.csv")
    status = (root / "d1/a.csv").stat()
    token, landed = f"{status.st_mtime_ns}-{status.st_ino}", status.st_ctime_ns // 1000
    assert file == SourceFile(f"{root}/d1/a.csv", 8, token, landed_at=landed)
    assert token_of(file.path) == file.token
    assert sha256_of(file.path) == hashlib.sha256(b"d1/a.csv").hexdigest()
    with open_source(file.path) as source:
        assert source.read() == b"d1/a.csv"
    assert token_of(f"{root}/none") is None


def test_wildcards_in_the_landing_stand_for_themselves_if_escaped(tmp_path: Path) -> None:
    (tmp_path / "[x]").mkdir()
    (tmp_path / "[x]/a.csv").write_text("")
    assert [file.path for file in list_sources(f"{tmp_path}/[[]x]/*.csv")] == [f"{tmp_path}/[x]/a.csv"]
    assert is_ready(f"{tmp_path}/[[]x]/*.csv", "exists")


@pytest.mark.parametrize(
    ("pattern", "ready", "holds"),
    [
        ("d1/*.csv", "exists", True),
        ("d3/*.csv", "exists", False),
        ("d3/*.csv", "always", True),
        ("d1/*.csv", "_SUCCESS", True),
        ("d2/*.csv", "_SUCCESS", False),
        ("d2/*.csv", "x", False),
        ("*/*.csv", "exists", True),
        ("d1/a.csv", MATCHES, True),
        ("d1/z.csv", MATCHES, False),
        ("d2/*.parquet", MATCHES, False),
        ("d9/*.csv", MATCHES, False),
    ],
)
def test_readiness(root: Path, pattern: str, ready: str, holds: bool) -> None:
    assert is_ready(f"{root}/{pattern}", ready, within=str(root)) is holds


def test_a_missing_root_is_distinguished_from_an_empty_day(root: Path) -> None:
    for call in (list_sources, lambda pattern, within: is_ready(pattern, "always", within=within)):
        with pytest.raises(InvalidUsage, match="gone does not exist; check the landing"):
            call(f"{root}/gone/d1/*", within=f"{root}/gone")
        with pytest.raises(InvalidUsage, match="is not a folder"):
            call(f"{root}/d1/a.csv/*", within=f"{root}/d1/a.csv")
    assert list_sources(f"{root}/d9/*", within=str(root)) == []


def test_what_is_awaited_is_called_by_its_name(root: Path) -> None:
    assert awaited(f"{root}/d9/*.csv", "exists") == f"the folder {root}/d9 is not there"
    assert awaited(f"{root}/d1/a.csv/*.csv", "exists") == f"{root}/d1/a.csv is not a folder"
    assert awaited(f"{root}/d2/*.csv", "_SUCCESS") == f"{root}/d2/_SUCCESS is not there"
    assert awaited("s3://b/in/d9/*.csv", "exists") == "there is nothing below s3://b/in/d9/"


@pytest.mark.parametrize(
    ("pattern", "own", "passed_over", "others"),
    [
        ("d1/*.csv", True, ["a.txt"], []),
        ("d1/*.parquet", True, ["a.csv", "a.txt", "b.csv"], []),
        ("d1/a.csv", True, ["a.txt"], ["b.csv"]),
        ("d1/A*.json", True, ["a.csv", "a.txt"], ["b.csv"]),
        ("d2/c*.csv", True, [], ["x/e.csv"]),
        ("d2/*.csv", True, ["x/e.csv"], []),
        ("d2/*.csv", False, [], []),
        ("d1/a.csv.gz", True, ["a.csv", "a.txt"], ["b.csv"]),
        ("*/*.txt", True, ["d1/b.csv", "d2/c.csv", "d1/a.csv", "d2/x/e.csv"], []),
        ("**/*.csv", True, ["d1/a.txt"], []),
        ("d9/*.parquet", True, [], []),
    ],
)
def test_files_beside_those_that_match(
    root: Path, pattern: str, own: bool, passed_over: list[str], others: list[str]
) -> None:
    """Called alike but for case, suffix and compression, or in a subfolder; never hidden ones, nor the marker."""
    beside = Beside(f"{root}/{pattern}", "_SUCCESS", own_folder=own)
    files = list_sources(f"{root}/{pattern}", within=str(root), beside=beside)
    assert (beside.without(files), beside.others) == (sorted(passed_over), others)


def test_what_cannot_be_listed_is_refused(root: Path) -> None:
    with pytest.raises(InvalidUsage, match="Not a directory"):
        list_sources(f"{root}/d1/a.csv/*")
    with pytest.raises(InvalidUsage, match="matches and is not a file; for files inside folders"):
        list_sources(f"{root}/d2/*")
    (root / "d1/z.csv").symlink_to(root / "d1/nowhere")
    with pytest.raises(InvalidUsage, match=r"z\.csv matches but cannot be read.*broken link"):
        list_sources(f"{root}/d1/*.csv")


def test_links_out_of_the_landing_are_refused(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "s.csv").write_text("secret")
    (root / "d1/link.csv").symlink_to(outside / "s.csv")
    (root / "d5").symlink_to(outside)
    for pattern in ("d1/*.csv", "d5/*.csv", "*/s.csv", "d1/link.csv"):
        with pytest.raises(InvalidUsage, match="outside the landing"):
            list_sources(f"{root}/{pattern}", within=str(root))
    with pytest.raises(InvalidUsage, match=r"with \.\. may leave"):
        list_sources(f"{root}/d1/../../outside/*.csv", within=str(root))


def test_links_within_the_landing_and_a_landing_that_is_a_link_are_fine(root: Path, tmp_path: Path) -> None:
    (root / "d2/again.csv").symlink_to(root / "d1/a.csv")
    assert names(root, "d2/*.csv") == ["d2/again.csv", "d2/c.csv"]
    (tmp_path / "alias").symlink_to(root)
    alias = tmp_path / "alias"
    assert [file.path for file in list_sources(f"{alias}/d1/a.csv", within=str(alias))] == [f"{alias}/d1/a.csv"]


def test_a_link_that_makes_a_circle_is_refused(root: Path) -> None:
    (root / "d2/x/up").symlink_to(root)
    with pytest.raises(InvalidUsage, match="is a link to a folder above it"):
        list_sources(f"{root}/**/*.csv")


def test_a_file_that_changed_or_went_since_it_was_listed_is_not_ready(root: Path) -> None:
    (file,) = list_sources(f"{root}/d1/a.csv")
    (root / "d1/a.csv").write_text("longer than before")
    with pytest.raises(NotReady, match="changed since it was listed: was 8 bytes, is 18"):
        fetch(file)
    (root / "d1/a.csv").unlink()
    for read in (lambda: fetch(file), lambda: sha256_of(file.path)):
        with pytest.raises(NotReady, match="is gone since it was listed"):
            read()


def test_a_file_that_is_not_what_the_plan_identified_is_not_ready(root: Path) -> None:
    (file,) = list_sources(f"{root}/d1/a.csv")
    with pytest.raises(NotReady, match="changed since it was listed"):
        fetch(SourceFile(file.path, file.bytes, file.token, "0" * 64))


def test_a_long_listing_says_how_far_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 100, 5))
    monkeypatch.setattr("tidemark.storage.landing.time.monotonic", lambda: next(seconds))
    lines: list[str] = []
    assert len(list_sources(f"{root}/d1/*", within=str(root), note=lines.append)) == 3
    assert lines == [f"listing {root}/d1: 1 files so far", f"listing {root}/d1: 3 files so far"]

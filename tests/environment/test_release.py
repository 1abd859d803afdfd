"""`make release` refuses what is no release, before it builds anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools import release

NOTES = "# Changelog\n\n## [0.6.0] - 2026-11-29\n\n### Added\n\n- SQL.\n\n## [0.5.0] - 2026-11-25\n\nOlder.\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def make(*, notes: str = NOTES, changed: str = "", tags: str = "") -> None:
        (tmp_path / "CHANGELOG.md").write_text(notes)
        answers = {"status": changed, "tag": tags}
        monkeypatch.setattr(release, "PROJECT", tmp_path)
        monkeypatch.setattr(release, "run", lambda *command, **_: answers[command[1]])

    return make


def test_what_is_committed_noted_and_new_is_ready(repository: Callable[..., None]) -> None:
    repository()
    release.check_ready("0.6.0")
    assert release.notes("0.6.0") == "### Added\n\n- SQL."


@pytest.mark.parametrize(
    ("version", "state", "message"),
    [
        ("0.6.0", {"changed": " M README.md\n"}, "changes that are not committed"),
        ("0.6.0.dev0", {}, "the version is 0.6.0.dev0: write that of the release"),
        ("0.6.1", {}, r"CHANGELOG.md begins with '\[0.6.0\] - 2026-11-29', and the version is 0.6.1"),
        ("0.6.0", {"notes": NOTES.replace("[0.6.0] - 2026-11-29", "[Unreleased]")}, r"begins with '\[Unreleased\]'"),
        ("0.6.0", {"tags": "v0.6.0\n"}, "v0.6.0 is tagged already"),
    ],
)
def test_else_it_says_what_to_do(
    repository: Callable[..., None], version: str, state: dict[str, str], message: str
) -> None:
    repository(**state)
    with pytest.raises(release.Refused, match=message):
        release.check_ready(version)

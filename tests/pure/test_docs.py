"""The documentation holds together: what it links to is there, all of it is listed, what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "releases"),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """What a heading is linked by: its words in lower case, with dashes between."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", text(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", text(page))):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_lists_every_page() -> None:
    listed = {(DOCS / link).resolve() for link in _LINK.findall(text(DOCS / "README.md"))}
    pages = {page for page in DOCS.rglob("*.md") if page.parent.name not in ("decisions", "releases")}
    assert pages - {DOCS / "README.md"} - listed == set()


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("*.md")), ids=lambda page: page.name)
def test_a_how_to_begins_with_what_it_is_for(page: Path) -> None:
    title, empty, first, *_ = text(page).split("\n")
    assert title.startswith("# ")
    assert empty == ""
    assert re.match(r"[A-Z]\w*[ :].*\w", first), "a sentence, not an example"


def test_the_list_of_words_has_every_word_that_the_page_introduces_and_what_status_shows() -> None:
    page = text(DOCS / "concepts.md")
    words = re.findall(r"^\| ([\w ]+?) \|", page.partition("## Words")[2], re.MULTILINE)[1:]
    assert words == sorted(words)
    introduced = {" ".join(bold.lower().replace("_", " ").split()) for bold in re.findall(r"\*\*([^*]+)\*\*", page)}
    shown = {
        "complete below",
        "trace upper",
        "unsealed",
        "debt",
        "late",
        "write amplification",
        "level",
        "hold",
        "since",
    }
    for word in introduced | shown:
        # `gates` and `retracted` are forms of what is listed, and `collect` is what the collector does.
        assert any(word.startswith(known) or known.startswith(word) or known in word.split() for known in words), word


def test_no_page_says_to_install_what_has_this_name_on_the_public_index() -> None:
    """It is another project's, command and all (docs/decisions/0035)."""
    for page in PAGES:
        if page.parent.name != "decisions":
            assert not re.search(r"pip install (-\S+ )*'?tidemark", text(page)), page


def test_every_setting_that_is_named_is_one() -> None:
    known = set(re.findall(r"^\| `(\w+)`", text(DOCS / "reference" / "settings.md"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"\bTIDEMARK_[A-Z_]*[A-Z]\b", text(page)))
        assert named - known == set(), page


def test_every_test_that_a_page_names_exists() -> None:
    for page in PAGES:
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)", text(page)):
            assert re.search(rf"^def {name}\(", text(ROOT / path), re.MULTILINE), f"{path}::{name}"

"""The page about Debezium: messages of each of its sections, taken by its collection file, are its rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "change-messages.md"
_SECTION = re.compile(
    r"^## (.*)\n(?:(?!^## ).*\n)*?```yaml\n([^`]*)```\n\n```json\n([^`]*)```\n\n```csv\n([^`]*)```", re.M
)
SECTIONS = _SECTION.findall(PAGE.read_text(encoding="utf-8"))


def test_each_database_has_a_section() -> None:
    assert [title for title, *_ in SECTIONS] == ["PostgreSQL", "MySQL and MariaDB", "SQL Server and Db2", "Oracle"]


@pytest.mark.parametrize(
    ("declared", "messages", "rows"), [parts for _, *parts in SECTIONS], ids=[s[0] for s in SECTIONS]
)
def test_messages_of_a_section_are_its_rows(shell: Shell, declared: str, messages: str, rows: str) -> None:
    name = declared.split()[1]
    shell.land(f"{name}/2024-01-01/a.jsonl", messages)
    shell.ok("init", shell.declared(declared))
    shell.ok("advance", name, "--to", "2024-01-02")
    assert shell.ok("as-of", name, "--format", "csv").out == rows

"""A prompt for statements of SQL: history, completion of names, and Ctrl-C that ends a statement and not the prompt."""

from __future__ import annotations

import os
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.api.sql import interrupts
from tidemark.cli import output
from tidemark.cli.sql_rows import asked, shown
from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from tidemark.cli.command import Call
    from tidemark.cli.read import Shape

FIRST, MORE = "tidemark> ", "     ...> "
MOST_HISTORY = 1_000
KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "JOIN", "USING", "ON", "AS", "WITH", "HAVING", "UNION",
    "ALL", "DISTINCT", "CASE", "WHEN", "THEN", "ELSE", "END", "AND", "OR", "NOT", "NULL", "IS", "IN", "BETWEEN", "LIKE",
    "FOR", "TIMESTAMP", "VERSION", "COMMITTED", "OF", "DESCRIBE", "SUMMARIZE", "count", "sum", "avg", "min", "max",
    "as_of", "changes", "windows", "latest_at",
)  # fmt: skip
HELP = """\
A statement ends with ; and may have several lines. Each collection is a table:
  SELECT * FROM flights LIMIT 5;
  SELECT * FROM flights FOR TIMESTAMP AS OF '2013-01-03' LIMIT 5;
  SELECT * FROM changes('flights', '2013-01-02', '2013-01-03') LIMIT 5;
.tables  the collections      .columns NAME  their columns      .help  this      .quit  leave (or Ctrl-D)
Ctrl-C ends a statement that runs; Tab completes names; history is kept."""


@dataclass
class Prompt:
    """Statements are read, asked and shown until the end of the input. Each is asked of the collections as they are
    then."""

    call: Call
    memory: str | None
    timeout: str | None
    limit: int | None
    shape: Shape
    committed: int | None = None
    _lines: list[str] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Until the end. What is wrong with a statement is one line, and the prompt goes on."""
        self._names = self.call.collections()
        output.note(f"{output.counted(len(self._names), 'collection')} in {self.call.root}; .help says more")
        # The library that edits lines looks for the real stdout.
        with redirect_stdout(self.call.out), _History(self._completed):
            while (line := self._line()) is not None:
                self._take(line)

    def _line(self) -> str | None:
        try:
            return input(MORE if self._lines else FIRST)
        except EOFError:
            print(file=self.call.out)
            return None
        except KeyboardInterrupt:
            print(file=self.call.out)
            self._lines.clear()
            return ""

    def _take(self, line: str) -> None:
        if not self._lines and line.strip().startswith("."):
            self._command(line.split())
            return
        if line.strip() or self._lines:
            self._lines.append(line)
        if line.rstrip().endswith(";"):
            statement = "\n".join(self._lines)
            self._lines.clear()
            self._ask(statement)

    def _ask(self, statement: str) -> None:
        try:
            with interrupts.heard():
                shown(
                    self.call,
                    asked(self.call, statement, self.memory, self.timeout, self.committed),
                    self.limit,
                    self.shape,
                )
        except TidemarkError as error:
            output.note(f"error: {error}")
        except KeyboardInterrupt:
            output.note("interrupted")

    def _command(self, words: list[str]) -> None:
        match words:
            case [".quit" | ".exit"]:
                raise EOFError
            case [".tables"]:
                self._ask("SHOW TABLES")
            case [".columns", name]:
                self._ask(f'SELECT column_name, column_type FROM (DESCRIBE "{name.replace(chr(34), "")}")')
            case _:
                print(HELP, file=self.call.out)

    def _completed(self, text: str, at: int) -> str | None:
        """The one of all words that begin so which is at a place."""
        words = [word for word in (*self._names, *KEYWORDS) if word.lower().startswith(text.lower())]
        return words[at] if at < len(words) else None


class _History:
    """Lines are kept from one prompt to the next, for their owner alone; without the library that edits lines they are
    read all the same."""

    def __init__(self, complete: object) -> None:
        self._complete = complete
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._path = Path(state) / "tidemark" / "sql_history"

    def __enter__(self) -> None:
        with suppress(ImportError, OSError):
            import readline

            readline.set_completer(self._complete)  # type: ignore[arg-type]
            readline.set_completer_delims(" \t\n\"'(),;=<>")
            readline.parse_and_bind("tab: complete")
            readline.set_history_length(MOST_HISTORY)
            readline.read_history_file(self._path)

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        with suppress(ImportError, OSError):
            import readline

            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)
            readline.write_history_file(self._path)
        return isinstance(error, EOFError)  # .quit

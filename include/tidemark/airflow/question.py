"""What a gate that failed asks, as people read it; and what they answered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tidemark.errors import listed, plain_line, shortened
from tidemark.model.acceptance import LEAST_REASON, MOST_REASON
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.wording import SHORT_ID, counted

MOST_BODY = 16_000
"""Characters of the question's text."""
MOST_INTERVALS = 5
"""Intervals that it names."""
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$&:@/])")


class Answer(StrEnum):
    """What may become of a batch that failed, as the buttons say it."""

    ACCEPT = "Accept as it is"
    QUARANTINE = "Quarantine"
    MENDED = "The file is mended"
    WAIT = "Wait for a mended file"
    FAIL = "Leave it red"


MEANS = {
    Answer.ACCEPT: f"the batch is certified all the same. Needs a **reason** of {LEAST_REASON} to {MOST_REASON} "
    "characters, which is kept for ever, with your name.",
    Answer.QUARANTINE: "the batch is taken out, the rest is judged, and the run goes on without it.",
    Answer.MENDED: "the batch is taken out, the files of the interval are read again, and judged in this task.",
    Answer.WAIT: "as before, as soon as one of its files has changed. No worker waits.",
    Answer.FAIL: "the task fails. What was read stays as it is.",
}


@dataclass(frozen=True)
class Question:
    """What is asked of batches that failed under a suite: whether they may be accepted, and whether they came from
    files that can be mended. `about` names the first intervals, `span` says in a few words which they are. `failed` are
    the findings as the gate's failure reports them (`GateReport.of_failures`)."""

    collection: str
    about: str
    suite: str
    batches: tuple[str, ...]
    acceptable: bool
    landed: bool
    headline: str
    failed: tuple[Mapping[str, Any], ...] = ()
    more: int = 0
    span: str = ""

    @classmethod
    def of(
        cls, collection: str, intervals: Sequence[Interval] | None, headline: str, details: Mapping[str, Any]
    ) -> Question:
        """The question that a gate's failure leads to, about the intervals of what failed; None: the collection is
        derived."""
        return cls(
            collection,
            listed(intervals, MOST_INTERVALS) if intervals else "what was computed",
            str(details["suite"]),
            tuple(details["batches"]),
            bool(details["acceptable"]),
            intervals is not None,
            headline,
            tuple(details["failed"]),
            int(details.get("more", 0)),
            _span(intervals or ()),
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON values that travel with the parked task: what an answer is judged by, without rows."""
        fields = {**vars(self), "batches": list(self.batches)}
        return {name: value for name, value in fields.items() if name not in ("failed", "more")}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Question:
        """A question as `as_dict` left it."""
        return replace(cls(**{**fields, "batches": tuple(fields["batches"])}))

    @property
    def options(self) -> list[str]:
        """What can be answered. Airflow keeps the options of the first time a task asks, so they do not depend on what
        failed."""
        mends = (Answer.MENDED, Answer.WAIT) if self.landed else ()
        return [str(answer) for answer in (Answer.ACCEPT, Answer.QUARANTINE, *mends, Answer.FAIL)]

    @property
    def names(self) -> str:
        """The batches, shortened."""
        return ", ".join(batch[:SHORT_ID] for batch in self.batches)

    @property
    def subject(self) -> str:
        """One line: how much failed of which collection, and of which interval."""
        failed = counted(len(self.failed) + self.more, "check")
        return f"{self.collection}: {failed} failed for {self.span or self.about}"

    @property
    def body(self) -> str:
        """Markdown: what failed, with some of the rows, and what each answer does. Values are text, never markup."""
        who = f"The unsealed gate of **{plain(self.collection)}** did not pass {plain(self.about)}."
        parts = [
            f"{who} Until this is answered its run waits, without a worker. Later days go on, and are sealed with it.",
            *(_finding(found) for found in self.failed),
        ]
        if self.more:
            parts.append(f"and {counted(self.more, 'check')} more: *Data docs* on the tab *Details* shows all.")
        answers = [f"- **{option}**: {MEANS[Answer(option)]}" for option in self.options]
        parts.append("\n".join(answers))
        parts.append(
            "Where this task asks again, Airflow still shows the text of the first time: the task's log says what "
            "failed last. **batch** says which batches are meant, so that no answer is about what you did not see."
        )
        return shortened("\n\n".join(parts), MOST_BODY)

    @property
    def params(self) -> dict[str, dict[str, Any]]:
        """The form beside the answers, as Airflow stores it."""
        from airflow.sdk import Param

        reason = Param(
            None,
            type=["null", "string"],
            title="reason",
            description="Why the data are right, or may stay wrong. Needed to accept.",
        )
        batch = Param(self.names, type=["null", "string"], title="batch", description="The batches that are meant.")
        return {"reason": reason.serialize(), "batch": batch.serialize()}


@dataclass(frozen=True)
class Answered:
    """What a person chose, who it was, and what the form said. `batches` are beginnings of ids; none: all."""

    answer: Answer
    by: str
    reason: str = ""
    batches: tuple[str, ...] = ()

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Answered:
        """What Airflow hands over when somebody has answered."""
        (chosen,) = event["chosen_options"]
        form, user = event.get("params_input") or {}, event.get("responded_by_user") or {}
        name = str(user.get("name") or user.get("id") or "somebody")
        named = tuple(str(form.get("batch") or "").replace(",", " ").split())
        return cls(Answer(chosen), name, str(form.get("reason") or ""), named)

    def meant(self, failed: Sequence[str]) -> list[str] | None:
        """The batches that are meant, of those that failed; None where others are named."""
        if any(not any(batch.startswith(name) for batch in failed) for name in self.batches):
            return None
        return [batch for batch in failed if not self.batches or batch.startswith(self.batches)]


def _span(intervals: Sequence[Interval]) -> str:
    """Several intervals in a few words; "" for one, which is called by itself."""
    if len(intervals) < 2:
        return ""
    first, last = min(each.lower for each in intervals), max(each.upper for each in intervals)
    return f"{len(intervals):,} intervals from {format_instant(first)} to {format_instant(last)}"


def plain(value: object) -> str:
    """A text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(r"\\\1", plain_line(str(value)))


def _finding(found: Mapping[str, Any]) -> str:
    """One check that failed: its name, its batch, what was found, some of the rows."""
    title = f"**{plain(found['rule'])}**, batch {plain(str(found['batch'])[:SHORT_ID])}: {plain(found['message'])}"
    if not found.get("acceptable"):
        title += " This is no judgement of data, and cannot be accepted."
    rows = found.get("rows") or []
    if not rows:
        return title
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([row.get(name, "") for name in columns] for row in rows)]
    shown = [[cell if cell == "---" else plain(cell) for cell in line] for line in lines]
    table = "\n".join(f"| {' | '.join(line)} |" for line in shown)
    of_all = f" of {found['failing']:,}" if found.get("failing") else ""
    return f"{title}\n\n{len(rows)}{of_all} rows:\n\n{table}"

"""The files of spark_apps, written from the declaration of the steps (docs/decisions/0036): `make reference`.

A file that is there already is written again; a step that should be submitted by a file of its own gets an empty one
first. Every other step runs by spark_apps/step.py.
"""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

from tidemark.jobs.steps.declared import STEPS
from tidemark.jobs.steps.step import Intervals, Step

FOLDER = Path(__file__).resolve().parents[1] / "spark_apps"
FREE = "step"
"""The app that runs any step: it is written by hand."""

_TEXT = '''"""{summary}

spark-submit --py-files build/tidemark.zip spark_apps/{name}.py {arguments}
"""
# Written by `make reference` from the declaration of the step; README.md says why it is a file of its own.

import sys

from tidemark.jobs import app

if __name__ == "__main__":
    sys.exit(app.main("{name}", sys.argv[1:]))
'''


def apps() -> dict[str, str]:
    """The text of each app that is a step of its own, by the name of the file."""
    present = {path.stem for path in FOLDER.glob("*.py")} - {FREE}
    return {f"{name}.py": _text(STEPS[name]) for name in sorted(present)}


def _text(step: Step) -> str:
    summary = " ".join(inspect.cleandoc(step.help).partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."
    summary = textwrap.fill(summary, 115, break_on_hyphens=False)
    arguments = "--root R --collection C"
    if step.intervals.of_run:
        arguments += " --lower T --upper T"
    elif step.intervals is Intervals.CHOICE:
        arguments += " [--lower T --upper T]"
    for argument in step.arguments:
        if argument.required and argument.environ is None:
            arguments += f" {argument.option} {argument.metavar}"
    return _TEXT.format(summary=summary, name=step.name, arguments=arguments)


if __name__ == "__main__":
    for name, text in apps().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"written spark_apps/{name}")

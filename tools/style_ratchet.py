"""Habits that the code still has, counted per file: the counts may only fall.

    tools/run python -m tools.style_ratchet            # say what got worse, with exit code 1
    tools/run python -m tools.style_ratchet --lower    # the same; then store lower counts where files got better

tools/style_counts.json has the counts, a line per file; a file that it does not name, as a new one, may have none.
`make check` lowers them itself: a count that is too high would let a file get worse again, and whoever made a file
better should have nothing to do but commit the counts with it.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
COUNTS = PROJECT / "tools" / "style_counts.json"
FOLDERS = ("benchmarks", "dags", "demo", "include", "plugins", "spark_apps", "tests", "tools")
NAMES = frozenset(["found", "one", "some", "of", "given", "asked", "known", "there", "plain", "shown", "kept"])
RULES = {
    "names": f"binds {{}} of the names that say nothing ({', '.join(sorted(NAMES))})",
    "PLR0917": "has {} functions with more than five positional arguments",
    "D205": "has {} docstrings without a blank line after the summary",
    "D209": "has {} docstrings of several lines whose closing quotes are not on a line of their own",
}
"""What is counted, as a message says it. All but `names` are rules of ruff."""

Places = Mapping[str, Mapping[str, Sequence[str]]]
"""Where files break rules: path, rule, places."""
Counts = Mapping[str, Mapping[str, int]]
"""How often files may break rules: path, rule, count."""


def bindings(source: str) -> list[str]:
    """List where a module binds one of NAMES, by line."""
    places = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Name(id=str(name), ctx=ast.Store())
                | ast.arg(arg=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ) if name in NAMES:
                places.append((node.lineno, name))
    return [f"{name} line {line}" for line, name in sorted(places)]


def worse(places: Places, allowed: Counts) -> list[str]:
    """Say which files break a rule more often than they may, a line per file and rule."""
    return [
        f"{path} {RULES[rule].format(len(where))}, {limit} are allowed: {', '.join(where)}"
        for path, rules in sorted(places.items())
        for rule, where in rules.items()
        if len(where) > (limit := allowed.get(path, {}).get(rule, 0))
    ]


def lowered(places: Places, allowed: Counts) -> Counts:
    """Compute what is allowed from now on: no more than before, and no more than there is."""
    counts = {
        path: {rule: min(limit, len(places.get(path, {}).get(rule, ()))) for rule, limit in rules.items()}
        for path, rules in sorted(allowed.items())
    }
    positive = {path: {rule: count for rule, count in rules.items() if count} for path, rules in counts.items()}
    return {path: rules for path, rules in positive.items() if rules}


def measured() -> Places:
    """Find where the files of this project break rules."""
    places: dict[str, dict[str, list[str]]] = {}
    for path in sorted(path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.py")):
        try:
            places[path.relative_to(PROJECT).as_posix()] = {"names": bindings(path.read_text(encoding="utf-8"))}
        except SyntaxError as error:
            sys.exit(f"{path.relative_to(PROJECT)} is not Python: {error}")
    rules = ",".join(rule for rule in RULES if rule != "names")
    command = ["ruff", "check", "--exit-zero", "--ignore-noqa", "--output-format=json", f"--select={rules}", *FOLDERS]
    printed = subprocess.run([sys.executable, "-m", *command], cwd=PROJECT, stdout=subprocess.PIPE, check=True).stdout
    for broken in json.loads(printed):
        by_rule = places[Path(broken["filename"]).relative_to(PROJECT).as_posix()]
        by_rule.setdefault(broken["code"], []).append(f"line {broken['location']['row']}")
    return places


def renames() -> dict[str, str]:
    """Ask git which files were renamed since the last commit: the old path and the new. Without git: none."""
    command = ["git", "diff", "--name-status", "--find-renames", "--diff-filter=R", "-z", "HEAD"]
    words = iter(subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True).stdout.split("\0"))
    return {old: new for _, old, new in zip(words, words, words, strict=False)}


def main() -> None:
    parser = ArgumentParser(description="Compare how often files break rules of style with how often they may.")
    parser.add_argument("--lower", action="store_true", help="store lower counts where files got better")
    lower = parser.parse_args().lower
    name = COUNTS.relative_to(PROJECT)
    try:
        stored = json.loads(COUNTS.read_text(encoding="utf-8"))
    except ValueError as error:
        sys.exit(f"{name} is not JSON ({error}): after a merge keep the lower count of each conflict")
    moved = {} if all((PROJECT / path).exists() for path in stored) else renames()
    places = measured()
    allowed = {moved.get(path, path): rules for path, rules in stored.items()}
    if lines := worse(places, allowed):
        sys.exit(
            "\n".join(lines) + f"\nThese counts may only fall. A renamed file keeps its counts if git sees the rename"
            f" (git add), or if you rename it in {name}."
        )
    counts = lowered(places, allowed)
    if counts == stored:
        return
    if not lower:
        print(f"{name} allows more than there is: tools/run python -m tools.style_ratchet --lower")
        return
    entries = (f"  {json.dumps(path)}: {json.dumps(rules)}" for path, rules in counts.items())
    COUNTS.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")
    print(f"{name}: lowered, commit it with your change")


if __name__ == "__main__":
    main()

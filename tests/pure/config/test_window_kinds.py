"""Every kind of windows is written by the fields of its section, in full or, if one is enough, by its value."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kinds import SAMPLES, Sample, name
from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.config.windows_kinds import KIND_SECTIONS
from tidemark.model.window.kinds import KINDS

pytestmark = pytest.mark.pure


def parsed(folder: Path, said: dict[str, Any]) -> Any:
    path = folder / "w.yaml"
    declared = {"name": "w", "from": "a", "windows": {"on": "t"} | said, "aggregates": {"n": "count"}}
    path.write_text(yaml.safe_dump(declared))
    file = parse(path)
    assert isinstance(file, DerivedFile)
    assert file.origin.definition.windows is not None
    return file.origin.definition.windows.kind


def test_every_kind_has_a_section() -> None:
    assert [one.of for one in KIND_SECTIONS.values()] == list(KINDS)
    assert list(KIND_SECTIONS) == [kind.kind for kind in KINDS]


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_a_kind_comes_from_a_file_as_it_was_written(sample: Sample, tmp_path: Path) -> None:
    kind = sample.kind
    own = {one.name: getattr(kind, one.name) for one in fields(kind) if one.name != "kind"}
    written = {kind.written_as.get(field, field): value for field, value in own.items() if value is not None}
    written = {field: str(value) if isinstance(value, str) else value for field, value in written.items()}
    assert parsed(tmp_path, {kind.kind: written}) == kind
    required = [one.name for one in fields(kind) if one.default is MISSING]
    others = [one for one in fields(kind) if one.default is not MISSING]
    if len(required) == 1 and all(getattr(kind, one.name) == one.default for one in others):
        assert parsed(tmp_path, {kind.kind: written[required[0]]}) == kind

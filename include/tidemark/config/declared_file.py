"""What the files of all collections have in common, landed and derived: a path, what they declare, and its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from tidemark.config.airflow import AirflowSection
from tidemark.config.declaration import Declaration, DerivedDeclaration
from tidemark.config.document import Document, Loc
from tidemark.errors import InvalidUsage

D = TypeVar("D", Declaration, DerivedDeclaration)


@dataclass(frozen=True)
class DeclaredFile(Generic[D]):
    """A collection file, valid in itself."""

    path: str
    declaration: D
    document: Document

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def own_dag(self) -> bool:
        """Whether a DAG file of the owner's makes its DAG."""
        return self.declaration.dag == "own"

    @property
    def airflow(self) -> AirflowSection:
        """How Airflow runs it."""
        return self.declaration.airflow

    def refusal(self, loc: Loc, message: str) -> InvalidUsage:
        """The error for what is wrong at `loc`."""
        return InvalidUsage(f"{self.path}:{self.document.line(loc)}: {message}")

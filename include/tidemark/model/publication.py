"""Publications: tables of others' formats that hold what a collection holds.

A `Destination` is what the collection's owner declares: which format, which table, how. A `Publication` is what the
state records of it: what was published last, and which parts of the collection the table may name.

**Pins.** A table that names parts needs them for as long as any of its retained snapshots does. The state pins them: a
pin is a whole table of parts, and the collector keeps all that a state names. A pin is set before the table names its
first part (Publishing), and goes after no retained snapshot names one any more (Published). So at every moment each
file that a published table names is named by a state, too.

An example, of a table that keeps one snapshot besides the newest:

    event                                       pins        the table's snapshots name
    Publishing of batch a                       a
    the table is committed                      a           a
    Published                                   a           a
    a and b are compacted into c                a           a             (the state's trace is c; a is kept)
    Publishing of c                             a c         a
    the table is committed: c for a             a c         a, c
    Published                                   a c         a, c
    Publishing of d; committed: c and d         a c d       c, c d        (the snapshot with a has expired)
    Published                                   c d         c, c d        (the collector may remove a)

**Invariants.** A collection has one publication of each format at most. Only a Publishing adds pins, of batches that
are live when it is committed; only a Published drops them, and only of the attempt that the state knows as the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tidemark.errors import InvalidUsage
from tidemark.model.batch import ObjectRef, PartsTable
from tidemark.model.column import ColumnType, ValueType
from tidemark.model.instant import format_instant

TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")
LONGEST_NAME = 255
RESERVED = frozenset(
    {
        "all",
        "alter",
        "and",
        "as",
        "at",
        "between",
        "by",
        "case",
        "create",
        "cross",
        "delete",
        "desc",
        "describe",
        "distinct",
        "drop",
        "else",
        "end",
        "except",
        "exists",
        "false",
        "for",
        "from",
        "full",
        "group",
        "having",
        "in",
        "inner",
        "insert",
        "intersect",
        "into",
        "is",
        "join",
        "left",
        "like",
        "limit",
        "merge",
        "natural",
        "not",
        "null",
        "on",
        "or",
        "order",
        "outer",
        "right",
        "select",
        "set",
        "show",
        "table",
        "then",
        "to",
        "true",
        "union",
        "unique",
        "update",
        "using",
        "values",
        "view",
        "when",
        "where",
        "with",
    }
)
"""Words of SQL that engines do not take for a name unless it is quoted."""
SECRETS = re.compile(r"secret|password|passwd|token|credential|access-key|access_key|api-key|api_key", re.IGNORECASE)
"""What a property is called that no collection file should hold."""


class TableFormat(StrEnum):
    """The formats in which a collection can be published."""

    ICEBERG = "iceberg"
    DELTA = "delta"

    def is_within_years(self, type: ValueType) -> bool:
        """Whether a column of a type has the years 1 to 9999 alone."""
        return type in _WITHIN_YEARS[self]


_WITHIN_YEARS: dict[TableFormat, tuple[ValueType, ...]] = {
    TableFormat.ICEBERG: (ColumnType.TIMESTAMP, ColumnType.DATE),
    TableFormat.DELTA: (ColumnType.DATE,),
}
"""The types of which a table has the years 1 to 9999 alone: pyiceberg and deltalake describe a file by its least and
its greatest value, and have no others."""


@dataclass(frozen=True)
class Destination:
    """Where a collection is published, as declared.

    `table` is the identifier in the catalog (Iceberg), or the path or URI of the table (Delta; empty: below the root).
    `catalog` are properties of the catalog, sorted by name; `name` alone means one that pyiceberg's own configuration
    describes. With `by_reference` parts are named where they can be, else all rows are copied. `keep` snapshots remain.
    """

    format: TableFormat
    table: str
    catalog: tuple[tuple[str, str], ...] = ()
    by_reference: bool = True
    copy_above: float = 0.3
    keep: int = 10

    @property
    def names_parts(self) -> bool:
        """Whether its table may name parts. Delta's cannot: its log names files below itself."""
        return self.by_reference and self.format is TableFormat.ICEBERG

    def __post_init__(self) -> None:
        if self.format is TableFormat.ICEBERG:
            _check_identifier(self.table)
        for name, value in self.catalog:
            if SECRETS.search(name) or re.search(r"//[^/@\s]+:[^/@\s]+@", value):
                raise InvalidUsage(
                    f"the catalog's property {name} is a secret, and would be stored with the collection; write "
                    "catalog: NAME and say it where pyiceberg looks: PYICEBERG_CATALOG__NAME__..., or .pyiceberg.yaml"
                )
        if not 0 <= self.copy_above <= 1:
            raise InvalidUsage(f"copy_above is {self.copy_above:g}; it is a share, from 0 to 1")
        if not 2 <= self.keep <= 1000:
            raise InvalidUsage(f"keep_snapshots is {self.keep}; it must be 2 to 1000")


def _check_identifier(table: str) -> None:
    if not TABLE.fullmatch(table) or len(table) > LONGEST_NAME:
        raise InvalidUsage(
            f"table {table!r} is no identifier; write a namespace and a name of letters, digits and underscores: "
            "db.flights"
        )
    if reserved := [part for part in table.split(".") if part.lower() in RESERVED]:
        raise InvalidUsage(f"table {table} has the name {reserved[0]}, a reserved word of SQL; choose another")


@dataclass(frozen=True)
class Pin:
    """A table of parts that a published table may name, under a name of its own: the key of its object, or of the first
    of its parts."""

    name: str
    parts: PartsTable


def pin_of(parts: PartsTable) -> Pin:
    """The pin of a batch's parts."""
    return Pin(parts.key if isinstance(parts, ObjectRef) else parts[0].file.key, parts)


@dataclass(frozen=True)
class Publication:
    """What was published of a collection in one format.

    `snapshot` is the table's snapshot or version that was committed last, `sequence` its place in the order of these;
    `version` and `seal` are the collection's that it holds. `attempt` is the last one that set pins.
    """

    format: TableFormat
    table: str
    attempt: str = ""
    snapshot: str = ""
    sequence: int = 0
    version: int = 0
    seal: int = 0
    pins: tuple[Pin, ...] = ()


def of_format(publications: Iterable[Publication], format: TableFormat) -> Publication | None:
    """The publication in a format, if there is one."""
    return next((one for one in publications if one.format is format), None)


@dataclass(frozen=True)
class Publishing:
    """An attempt is about to make a table name the parts of `pins`. `afresh`: the table is written from scratch,
    whatever it was."""

    format: TableFormat
    table: str
    attempt: str
    pins: tuple[Pin, ...] = ()
    afresh: bool = False
    kind: Literal["publishing"] = "publishing"

    @property
    def words(self) -> str:
        named = f", which is to name parts of {len(self.pins)} more batches" if self.pins else ""
        return f"began to publish to {self.format} table {self.table}{named}"


@dataclass(frozen=True)
class Published:
    """A table holds the collection as of `seal`; of the pins those in `keeps` (names) stay. `attempt` is the last one
    that set pins, as the publisher knew it."""

    format: TableFormat
    table: str
    attempt: str
    snapshot: str
    sequence: int
    version: int
    seal: int
    keeps: tuple[str, ...] = ()
    kind: Literal["published"] = "published"

    @property
    def words(self) -> str:
        return f"published to {self.format} table {self.table}: known up to {format_instant(self.seal)}"


@dataclass(frozen=True)
class Unpublished:
    """A table is no publication of the collection any more; its pins go."""

    format: TableFormat
    kind: Literal["unpublished"] = "unpublished"

    @property
    def words(self) -> str:
        return f"ended the publication in {self.format}"

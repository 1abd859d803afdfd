"""The options of the data source, and the questions they ask. Nothing here knows Spark.

Every option is text, and its name is in small letters, as Spark hands them on. Each is an argument of the Python API
under the same rules; what is no option, or none of this kind of read, is refused with the nearest name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidUsage, listed
from tidemark.model.nearest import nearest

if TYPE_CHECKING:
    from tidemark.api.opened import OpenCollection
    from tidemark.api.reads import AsOf, Changes
    from tidemark.model.collection import Collection

PLACE = ("path", "root", "name")
ANY = (*PLACE, "columns", "where", "net")
AS_OF = ("as_of", "committed", "event_time", "range", "range_from", "range_to", "multiplicity")
CHANGES = ("changes_after", "changes_upto", "net")
BATCH = ("version", *AS_OF, *CHANGES)
STREAM = ("starting", "hold", "seals_per_batch")
KNOWN = tuple(dict.fromkeys([*ANY, *BATCH, *STREAM]))
BEGINNING, NEWEST = "beginning", "newest"
"""Where changes begin, beside a time."""


@dataclass(frozen=True)
class Options:
    """The options of one reader, by name. Raises InvalidUsage for one that there is not, with the nearest there is."""

    given: Mapping[str, str]

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            if name not in KNOWN:
                raise InvalidUsage(f"tidemark: there is no option {name!r}{nearest(name, KNOWN)}")
            if not isinstance(value, str):
                raise InvalidUsage(f"tidemark: option {name} has no value; leave it out, or give it one")

    @property
    def is_stream(self) -> bool:
        """Whether the options are those of a stream: where it starts is always among them."""
        return "starting" in self.given

    def named(self, names: Iterable[str]) -> list[str]:
        """Those of some names that were given."""
        return [name for name in names if name in self.given]

    def truth(self, name: str) -> bool:
        """The value of an option that is true or false; false where it was not given."""
        value = self.given.get(name, "false").lower()
        if value not in ("true", "false"):
            raise InvalidUsage(f"tidemark: option {name} is {self.given[name]!r}; it is true or false")
        return value == "true"

    def count(self, name: str, least: int) -> int | None:
        """The value of an option that is a whole number; None where it was not given."""
        text = self.given.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            raise InvalidUsage(f"tidemark: option {name} is {text!r}; it is a whole number from {least} on")
        return int(text)

    @property
    def place(self) -> tuple[str, str | None]:
        """The root and the name, or the address of the collection and None."""
        path, root, name = (self.given.get(one) for one in PLACE)
        if path is not None and (root is not None or name is not None):
            raise InvalidUsage("tidemark: give the path of the collection, or root and name, not both")
        if path is not None:
            return path, None
        if root is None or name is None:
            raise InvalidUsage(
                "tidemark: which collection? load its path, such as s3://lake/collections/flights, or give the "
                "options root and name"
            )
        return root, name


def opened(options: Options, version: int | None = None) -> OpenCollection:
    """The collection that the options name, at `version` (None: as the options say, else the newest)."""
    from tidemark.api.opening import open

    root, name = options.place
    return open(root, name, options.count("version", 1) if version is None else version)


def question(found: OpenCollection, options: Options, columns: tuple[str, ...] | None = None) -> AsOf | Changes:
    """What a batch read asks of a collection; of its columns only `columns`, if there are any, else those that the
    options name.

    Raises InvalidUsage for options that do not go together, and as the methods of OpenCollection do."""
    if options.is_stream or options.named(STREAM):
        (first, *_) = options.named(STREAM)
        raise InvalidUsage(f"tidemark: option {first} is one of spark.readStream; this is spark.read")
    rows, learned = options.named(AS_OF), options.named(CHANGES)
    if rows and learned:
        raise InvalidUsage(
            f"tidemark: {rows[0]} asks for the rows at a time, {learned[0]} for changes; give options of one of the two"
        )
    given, names = options.given, columns or named_columns(options)
    where = given.get("where")
    if learned:
        return changes(found, options, names)
    if (ends := options.named(("range_from", "range_to"))) and "range" not in given:
        raise InvalidUsage(f"tidemark: {ends[0]} is an end on a timeline; give its column as option range")
    time, event_time, committed = given.get("as_of"), given.get("event_time"), given.get("committed")
    if "range" in given:
        lower, upper = given.get("range_from"), given.get("range_to")
        timeline = given["range"]
        return found.range(timeline, lower, upper, where, names, time=time, event_time=event_time, committed=committed)
    return found.as_of(time, event_time, names, where, committed=committed)


def stream_options(options: Options) -> None:
    """Raise InvalidUsage for options that no stream has, and for a stream that does not say where it starts."""
    if others := [name for name in options.named(BATCH) if name not in ANY]:
        raise InvalidUsage(f"tidemark: option {others[0]} is one of spark.read; this is spark.readStream")
    if not options.is_stream:
        raise InvalidUsage(
            f"tidemark: where does the stream start? give option starting: {BEGINNING}, {NEWEST} or a time"
        )
    options.count("seals_per_batch", 1)


def changes(found: OpenCollection, options: Options, names: Any) -> Changes:
    """The changes that the options of a batch read ask for."""
    after, net = options.given.get("changes_after"), options.truth("net")
    if after is None and "changes_upto" not in options.given:
        raise InvalidUsage("tidemark: net adds up changes; give changes_after, a time or `beginning`")
    start = None if after in (None, BEGINNING) else after
    return found.changes(start, options.given.get("changes_upto"), net, names, options.given.get("where"))


def named_columns(options: Options) -> list[str] | None:
    """The columns that the option names, commas between them; None: all."""
    text = options.given.get("columns")
    return None if text is None else [name for part in text.split(",") if (name := part.strip())]


def own_columns(collection: Collection, options: Options, asked: list[str], beside: list[str]) -> tuple[str, ...]:
    """Of the names that a schema asks for, those of the collection's columns; none: it asks for others only, which the
    answer has `beside` them.

    Raises InvalidUsage for a schema without columns, for names that are none, with the nearest, and where the option
    `columns` names others."""
    if not asked:
        raise InvalidUsage("tidemark: the schema has no columns; name some, or leave it out for all")
    valid = [*(column.name for column in collection.columns), *beside]
    for name in asked:
        if name not in valid:
            near = nearest(name, valid) if "did you mean" in nearest(name, valid) else f"; there are {listed(valid)}"
            raise InvalidUsage(f"tidemark: schema: collection {collection.name} has no column {name!r}{near}")
    if len(set(asked)) < len(asked):
        raise InvalidUsage(f"tidemark: the schema names some columns twice: {listed(asked)}")
    own = tuple(name for name in asked if name not in beside)
    named = named_columns(options)
    if named is not None and set(own) - set(named):
        raise InvalidUsage(
            f"tidemark: the schema asks for {listed(sorted(set(own) - set(named)))}, which option columns leaves out"
        )
    return own

"""The declaration `init` commits: the collection file's, with types for what it leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.cli import output
from tidemark.errors import InvalidUsage, TidemarkError, Unavailable

_MOST_FILES = 100
"""Files that are opened to find one with rows."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemark.cli.command import Call
    from tidemark.config.collection_file import CollectionFile
    from tidemark.config.declaration import Declaration
    from tidemark.config.derived_file import DerivedFile
    from tidemark.config.infer import Inferred
    from tidemark.jobs.job import Job
    from tidemark.jobs.queries.columns_in_files import InFiles
    from tidemark.model.arrangement import Arrangement
    from tidemark.model.collection import Collection, ValueType


def declared(
    call: Call, job: Job, file: CollectionFile | DerivedFile, sample: str | None
) -> tuple[Collection, dict[str, tuple[str, str]]]:
    """The collection, and the types that were inferred just now, with why. Types frozen by an earlier `init` stay."""
    from tidemark.config.derived_file import DerivedFile

    if isinstance(file, DerivedFile):
        return _derived(call, job, file, sample)
    first = _checked_first_file(call, job, file, sample)
    if not file.undeclared:
        return _ordered(file.collection(), first), {}
    frozen = _types_of_landed(job, file.declaration, sample)
    types = {name: frozen[name] for name in file.undeclared if name in frozen}
    inferred: dict[str, Inferred] = {}
    if len(types) < len(file.undeclared):
        from tidemark.config.collection_file import infer_columns

        inferred = infer_columns(file.path, sample or first_landed(call, file))
    new = {name: column for name, column in inferred.items() if name not in types}
    collection = _ordered(file.collection({**types, **{name: column.type for name, column in new.items()}}), first)
    return collection, {name: (str(column.type), column.why) for name, column in new.items()}


def _ordered(collection: Collection, first: str | None) -> Collection:
    """The collection with the order of its messages: where its file says none, what their `first` file shows."""
    from tidemark.arrow.decode.content import BadFile, Content
    from tidemark.arrow.decode.debezium_files import first_source
    from tidemark.model.collection import Envelope
    from tidemark.model.ledger import SourceFile
    from tidemark.model.ordering import with_order
    from tidemark.model.place import NO_ORDER, POSITION, RULES

    source = collection.landed.source
    if source.envelope is not Envelope.DEBEZIUM:
        return collection
    if source.order_columns == (POSITION,):
        output.note(f"order_by: {NO_ORDER}")
    if first is None or source.order_by not in (None, ()):
        return collection
    try:
        message = first_source(Content(SourceFile(first, 0, ""), "", 0, None, source=source), source.format)
    except BadFile as bad:
        raise InvalidUsage(str(bad)) from None
    if message is None:
        return collection
    if source.order_by is not None:
        if any(message.get(name) is not None for name in ("txId", "commit_lsn", "gtid")):
            output.note(
                "order_by: [] takes each message of a transaction alone: rows whose keys change places in one may be "
                "lost; without order_by a transaction is one change"
            )
        return collection
    if rule := RULES.get(str(message.get("connector"))):
        if rule.unplaced and all(message.get(name.removeprefix("source.")) is None for name in rule.fields[0]):
            output.note(rule.unplaced)
        return collection
    output.note(
        "messages name no connector with an order, so those of one key and one time are in order of file and line; "
        "order_by: [source.lsn], or another list of fields, would put them in order"
    )
    return with_order(collection, ())


def _checked_first_file(call: Call, job: Job, file: CollectionFile, sample: str | None) -> str | None:
    """Check the columns that give times and orders against the sample, or the first file that has landed.

    Once rows are there, these columns are known to be right, and only a rename changes them.

    Returns:
        The file; None if there is none, it cannot be read, or rows are there.

    Raises:
        InvalidUsage: The file has no such column.
    """
    from tidemark.cli import output
    from tidemark.config.collection_file import wrong_coordinate

    current = job.log.load().arrangement
    if current is not None and not current.has_no_data:
        return None
    try:
        path = sample or _first_of(file, _landed_files(call, file)[1])
        wrong = wrong_coordinate(file, path) if path else None
    except (InvalidUsage, Unavailable) as error:
        if call.has_landing:
            output.note(f"that a file has the columns of times was not checked: {error}")
        return None
    if wrong is not None:
        raise wrong
    return path


def _derived(
    call: Call, job: Job, file: DerivedFile, sample: str | None
) -> tuple[Collection, dict[str, tuple[str, str]]]:
    """A derived collection, whose columns its definition says. Its inputs must be there."""
    from tidemark.cli.command import UsageError
    from tidemark.jobs.steps.init import derived_collection

    if sample is not None:
        raise UsageError(f"--sample is for landed collections; {file.name} is derived, its definition says its types")
    check_inputs(call, file)
    before = _frozen(job)
    collection = derived_collection(job, file)
    known = {*before, *file.declaration.types}
    new = [column for column in collection.columns if column.name not in known]
    return collection, {column.name: (str(column.type), "as its definition gives it") for column in new}


def check_inputs(call: Call, file: DerivedFile) -> None:
    """Raise InvalidUsage, with the nearest name, for an input that is not below the root."""
    from tidemark.config.nearest import nearest
    from tidemark.jobs.queries.locate import collections

    there = collections(call.root)
    for name in file.inputs:
        if name not in there:
            missing = f"from: there is no collection {name} below {call.root}; create it by `tidemark init`"
            near = nearest(name, there) if there else ""
            raise file.refusal(file.line_of_input(name), f"{missing}{near}")


def _frozen(job: Job) -> dict[str, ValueType]:
    current = job.log.load().arrangement
    if current is None:
        return {}
    read = () if current.collection.is_derived else current.collection.landed.inputs
    return {column.name: column.type for column in (*read, *current.collection.columns)}


def _types_of_landed(job: Job, declaration: Declaration, sample: str | None) -> dict[str, ValueType]:
    """The types that the collection has, by the names that its file gives columns now.

    With a sample, those of a collection without data are inferred again.
    """
    from tidemark.model.evolution import pending_renames

    current = job.log.load().arrangement
    if current is None or (sample is not None and current.has_no_data):
        return {}
    types = _frozen(job)
    renames = [(old, new) for new, old in declaration.renames.items()]
    pending = pending_renames(current.collection, renames, declaration.value)
    return types | {new: types[old] for new, old in pending.items()}


def since_when(call: Call, before: Arrangement | None, state: Arrangement) -> list[InFiles]:
    """Since when files that were read have the new columns of a declaration; nothing where none could be read again."""
    from tidemark.jobs.queries.columns_in_files import MOST_FILES, added, in_files

    columns = added(before.collection, state.collection) if before is not None else []
    if not columns or state.collection.is_derived or not state.ingested.members:
        return []
    if not state.collection.landed.reprocess_for:
        output.note(
            f"{', '.join(columns)}: null in rows that were read before: without `reprocess_for`, no file is read again"
        )
        return []
    try:
        with output.working("looking for the columns in files that were read", MOST_FILES) as advance:
            return in_files(state, columns, call.landing, lambda files: advance("looking at files", files, MOST_FILES))
    except TidemarkError as error:
        output.note(f"whether files that were read have {', '.join(columns)} is not known: {error}")
        return []


def first_landed(call: Call, file: CollectionFile) -> str:
    """The first delta file by path, of whatever interval. InvalidUsage if none has landed."""
    pattern, paths = _landed_files(call, file)
    if not paths:
        raise InvalidUsage(
            f"{file.path} declares no type for {', '.join(file.undeclared)}, and no file has landed at {pattern} "
            "to infer it from; declare it under columns:, or pass --sample FILE"
        )
    return _first_of(file, paths) or paths[0]


def _first_of(file: CollectionFile, paths: Sequence[str]) -> str | None:
    """The first file that shows columns: of messages one with a row, as heartbeats may fill a file."""
    from tidemark.arrow.decode.content import Content
    from tidemark.arrow.decode.debezium_files import shows_rows
    from tidemark.config.debezium import DEBEZIUM
    from tidemark.model.ledger import SourceFile

    first = next(iter(paths), None)
    if file.declaration.source.envelope != DEBEZIUM:
        return first
    source = file.declaration.source.as_written
    contents = (Content(SourceFile(path, 0, ""), "", 0, None, source=source) for path in paths[:_MOST_FILES])
    return next((content.path for content in contents if shows_rows(content, source.format)), first)


def _landed_files(call: Call, file: CollectionFile) -> tuple[str, list[str]]:
    """The pattern of the delta files of all intervals, and the files that have landed, by path."""
    from tidemark.config.template import of_any_interval, uses_landing
    from tidemark.storage import landing

    path = file.declaration.source.path
    pattern = of_any_interval(path, call.landing if uses_landing(path) else "")
    return pattern, [found.path for found in landing.list_sources(pattern)]

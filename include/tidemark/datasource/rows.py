"""The rows of a question for Spark: its read tasks as partitions, answered by the kernels that `to_arrow` has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tidemark.datasource.refusal import one_line
from tidemark.errors import InvalidUsage, TidemarkError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tidemark.api.reads import AsOf, Changes
    from tidemark.arrow.read import Answered
    from tidemark.datasource.options import Options
    from tidemark.plan.tasks import ReadTask
    from tidemark.storage.stores.store import ObjectStore

CORES = 8
"""For how many cores a read is cut: Spark does not say to a data source how many it has."""
BATCH_BYTES = 16 * 2**20
"""Most bytes of rows handed to the JVM at once."""
FAMILIES = ("is_integer", "is_floating", "is_decimal", "is_timestamp")
"""Types between which values are converted where none is lost."""


class TaskPartition(InputPartition):
    """A partition: one read task of a version, as JSON, and what makes its rows, in columns that are not yet those that
    are asked for."""

    def __init__(self, value: bytes, kernel: Answered, version: int) -> None:
        self.value, self.kernel, self.version = value, kernel, version


class TaskReader:
    """What answers tasks from the store at an address, in the columns that are asked for. It crosses to executors, with
    nothing of state or store."""

    def __init__(self, url: str, asked: pa.Schema) -> None:
        self._url, self._asked = url, asked

    def rows(self, partition: TaskPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, in batches of bounded size."""
        from tidemark.arrow.rows.cuts import pieces
        from tidemark.plan.tasks import ReadTask
        from tidemark.storage import open_store
        from tidemark.storage.documents.codec import decode
        from tidemark.storage.stores.store import Missing

        task: ReadTask = decode(partition.value, ReadTask, name="read task")
        store = open_store(self._url)
        with one_line():
            try:
                for rows in partition.kernel(store, task):
                    if rows.num_rows:
                        yield from pieces(as_asked(rows, self._asked), BATCH_BYTES)
            except (Missing, TidemarkError) as error:
                _check_kept(store, task, partition.version, error)
                raise


def _check_kept(store: ObjectStore, task: ReadTask, version: int, error: Exception) -> None:
    """Raise InvalidUsage where a read failed as its version was collected since."""
    from tidemark.api.pinned import check_kept
    from tidemark.jobs.job import fresh_id
    from tidemark.storage.log.log import StateLog

    check_kept(StateLog(store, fresh_id), task.collection.name, version, error)


class QuestionReader(DataSourceReader):
    """The reader of a batch read, at one version of the collection: `version`, or where it is None the newest."""

    def __init__(self, options: Options, version: int | None, schema: StructType) -> None:
        from tidemark.datasource.options import opened, own_columns, question

        found = opened(options, version)
        beside = beside_columns(question(found, options), options)
        own = own_columns(found.state.collection, options, list(schema.names), beside)
        self._question: AsOf | Changes | None = question(found, options, own)
        self._each = "_multiplicity" in self._question.schema.names and not options.truth("multiplicity")
        self._tasks = TaskReader(found.store.url, asked_schema(answer_schema(self._question, options), schema))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_question": None}

    def partitions(self) -> list[TaskPartition]:
        """A partition for each task."""
        assert self._question is not None  # it is the process that made the reader that is asked
        with one_line():
            self._question.note()
            return task_partitions(self._question, each=self._each)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; none of the one that Spark makes where there is no task."""
        return self._tasks.rows(partition) if isinstance(partition, TaskPartition) else iter(())


def task_partitions(question: AsOf | Changes, *, each: bool = False) -> list[TaskPartition]:
    """The read tasks of a question; with `each` a row of multiplicity m is m rows."""
    from tidemark.api.reads import AsOf
    from tidemark.spark.read import tasks_of
    from tidemark.storage.documents.codec import encode
    from tidemark.storage.sidecars import parts_table

    kernel = question.each_row if each and isinstance(question, AsOf) else question.kernel
    request, parts = parts_table.opened_read(question.store, question.request)
    return [TaskPartition(encode(task), kernel, question.version) for task in tasks_of(CORES, request, parts)]


def answer_schema(question: AsOf | Changes, options: Options) -> pa.Schema:
    """The columns that the data source has for a question."""
    schema = question.schema
    at = schema.get_field_index("_multiplicity")
    return schema if at < 0 or options.truth("multiplicity") else schema.remove(at)


def beside_columns(question: AsOf | Changes, options: Options) -> list[str]:
    """The columns of the answer that are none of the collection."""
    own = {column.name for column in question.request.collection.columns}
    return [name for name in answer_schema(question, options).names if name not in own]


def asked_schema(answered: pa.Schema, schema: StructType) -> pa.Schema:
    """What Spark takes as rows of `schema`. InvalidUsage where the answer's columns cannot be that: of another type, or
    null where nulls are excluded."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

    asked = to_arrow_schema(schema, timezone="UTC")
    for field, wanted in zip(asked, schema.fields, strict=True):
        have = answered.field(field.name)
        alike = any(getattr(pa.types, name)(field.type) and getattr(pa.types, name)(have.type) for name in FAMILIES)
        if field.type != have.type and not alike:
            type_ = from_arrow_type(have.type, prefer_timestamp_ntz=False).simpleString()
            raise InvalidUsage(
                f"tidemark: schema: column {field.name} is {type_}, not {wanted.dataType.simpleString()}; ask for "
                f"{type_}, and cast it in the query"
            )
        if have.nullable and not field.nullable:
            raise InvalidUsage(f"tidemark: schema: column {field.name} may be null; leave NOT NULL out")
    return asked


def as_asked(rows: pa.RecordBatch, asked: pa.Schema) -> pa.RecordBatch:
    """Rows in the columns of a schema. InvalidUsage for a value that its type does not hold."""
    import pyarrow as pa

    columns = []
    for field in asked:
        column = rows.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise InvalidUsage(f"tidemark: schema: column {field.name} is not {field.type}: {error}") from None
    return pa.RecordBatch.from_arrays(columns, schema=asked)

"""Delta files in JSON lines, or arrays of JSON objects (jsonarray.py): UTF-8, blank lines are skipped.

Arrow parses blocks of lines. It is laxer than this format (it takes `null` for a row, and dies of one at the start; it
looks at no byte of a field it ignores, and takes `Inf` for a number), so a block it might misread, and one it refuses,
is parsed by Python, line by line: slow, exact, and with a line number.
A column's name may be a path, `source.ts_ms`: the field of an object within the row.
Numbers of decimal columns are taken as they are written, and so are those within json: no double is on the way. Rows
with json columns are parsed by Python: Arrow makes no text of a value.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tidemark.arrow.decode.columns_in_file import different, labelled
from tidemark.arrow.decode.content import MAX_ROW_BYTES, BadFile, Content, memory_is_no_verdict
from tidemark.arrow.decode.jsonarray import Rows
from tidemark.arrow.decode.jsontexts import or_null
from tidemark.arrow.decode.strict import SCALED, shorter, shown, variable_scale
from tidemark.arrow.rows.columns import Bools, Ints, leaves, nested
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import listed
from tidemark.model import canonical_json, decimals, encoded_bytes
from tidemark.model.canonical_json import Literal, NotJson, Pairs
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.field_path import steps

BLOCK_BYTES = 8 * 2**20
MAX_LINE_BYTES = MAX_ROW_BYTES
MAX_CELLS = 4_000_000
"""Values decoded at once: an absent field takes no byte of a line, and eight in memory."""
_BOM = b"\xef\xbb\xbf"
_MOST_BLANKS = 4 * 2**10
"""Bytes before an array, or before what shows that there is none."""
# A line that does not start with `{`; a null or a second object after an object. Three searches, as each alone runs
# along its first literal byte, and one with `|` would not.
_DOUBTFUL = tuple(re.compile(p) for p in (rb"\A\s*[^{\s]", rb"\n[ \t\r]*[^{\s]", rb"\}[ \t\r]*[n{]"))
_NULL_LINE = re.compile(rb"^null[ \t\r]*$", re.MULTILINE)
_MOST_DIGITS = 400
"""More than any number of a column but json has."""
_SHOWN, _LEVELS_SHOWN = 20, 4
"""Of a value in a message: elements, and how deep they are shown."""
_ONE_A_LINE = "write one object a line"
_OVERFLOW = ": integer overflow, beyond 64 bits"
_TEXTS = (ColumnType.STRING, ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.BYTES)
_SCALED = pa.struct([("scale", pa.int64()), ("value", pa.string())])
"""A decimal beside its own scale, as a message has it."""
_LINES_SHOWN = 20
"""Of a block, for how it writes decimals."""
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""Floats that are no numbers of JSON, as most writers have them: in quotes."""


@dataclass(frozen=True)
class Field:
    """A field of rows.

    Attributes:
        name: Its path in a row.
        type: What it is read as.
        declared: The type that a file declares, for messages.
        decimal: The type of a decimal that is read as the base64 of a whole number of its last digit.
        advice: What to add to a refusal of a whole number.
        places: The paths where it may be in a row, if its name is none: it is at the first that is there.
        optional: Whether it may be missing.
        if_missing: What to add to a refusal of a file that does not have it.
    """

    name: str
    type: ValueType
    declared: str
    decimal: DecimalType | None = None
    advice: str = ""
    places: tuple[str, ...] = ()
    optional: bool = False
    if_missing: str = ""

    @property
    def at(self) -> tuple[str, ...]:
        """The paths where it may be in a row."""
        return self.places or (self.name,)


@dataclass(frozen=True)
class Sieve:
    """Which rows are read whole: `keep` says it of the numbered rows of a block, by the `columns`."""

    columns: Sequence[Field]
    keep: Callable[[pa.RecordBatch, Ints], Bools]


def read_blocks(
    content: Content,
    columns: Sequence[Field],
    *,
    optional: bool = False,
    null_line: bytes | None = None,
    placeholder: str | None = None,
    sieve: Sieve | None = None,
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """The columns block by block, with the numbers of the rows: bools, numbers and json (canonical) as they shall be,
    all else as texts; an absent field is null. With a `placeholder` any other text in a json column is JSON.
    With a `sieve` the rows that it keeps.

    Raises BadFile for what is not JSON lines, for a value of another type, and, unless columns are `optional`, for one
    in no line of the file. A line that is `null` is read as if it was `null_line`, where one is given.
    """
    unseen = set() if optional else {column.name for column in columns if not column.optional}
    line, first, taken = 1, 0, list[Bools]()
    for block in blocks(content, most_lines=max(1, MAX_CELLS // max(1, len(columns)))):
        with memory_is_no_verdict(content.path):
            if null_line is not None and (block.startswith(b"null") or b"\nnull" in block):
                block = _NULL_LINE.sub(null_line, block)
            keeps = None
            if sieve is not None:
                looked_at = _parsed(content, block, line, sieve.columns, placeholder)
                keeps = sieve.keep(looked_at, np.arange(first, first + looked_at.num_rows))
                taken += [keeps] if unseen else []
                block = _only_lines(block, keeps)
            batch = _parsed(content, block, line, columns, placeholder)
        unseen -= {name for name in unseen if batch.column(name).null_count < batch.num_rows}
        line += block.count(b"\n")
        rows = np.arange(first, first + batch.num_rows) if keeps is None else first + keeps.nonzero()[0]
        first += batch.num_rows if keeps is None else len(keeps)
        yield batch, rows
    has_rows = any(keeps.any() for keeps in taken) if sieve else first > 0
    absent = {column.name: column for column in columns if column.name in unseen}
    if has_rows and (missing := sorted(unseen - present(content, {name: absent[name].at for name in absent}, taken))):
        column = absent[missing[0]]
        name, has = labelled(column.name, column.at), listed(next(_name_lists(content), []))
        problem = f"column {name} is missing from every line; the first line has {has}{column.if_missing}"
        raise BadFile(content.path, problem)


def _parsed(
    content: Content, block: bytes, line: int, columns: Sequence[Field], placeholder: str | None
) -> pa.RecordBatch:
    """The columns of some lines, the first of which is `line`. Raises BadFile."""
    schema = pa.schema([(column.name, raw_type(column.type)) for column in columns])
    batch = None
    if not any(column.type is ColumnType.JSON for column in columns):
        read = of_files(columns) if any(column.places for column in columns) else columns
        batch = _fast(block, _with_scales(block, read, pa.schema([(each.name, raw_type(each.type)) for each in read])))
        if batch is not None and read is not columns:
            batch = chosen(batch, columns, block)
    return _exact(content, block, line, columns, schema, placeholder) if batch is None else batch


def of_files(columns: Sequence[Field]) -> list[Field]:
    """What is read of rows for columns that may be at several places: a field for each place, once.

    Nothing is within a field that is a text or a number where it is there.
    """
    read = [replace(column, name=place, places=()) for column in columns for place in column.at]
    flat = {(*steps(each.name),) for each in read}

    def is_within(path: str) -> bool:
        names = (*steps(path),)
        return any(names[:count] in flat for count in range(1, len(names)))

    return [*{each.name: each for each in read if not is_within(each.name)}.values()]


def chosen(read: pa.RecordBatch, columns: Sequence[Field], block: bytes) -> pa.RecordBatch | None:
    """Of each column the value at the first place where one is; None where Python has to look."""
    arrays = []
    for column in columns:
        several = [read.column(place) for place in column.at if place in read.schema.names]
        raw = raw_type(column.type)
        if any(array.type != (several[0].type if column.decimal else raw) for array in several):
            return None  # two columns are read from one field as different types
        for array in several[1:]:
            both = pc.and_(array.is_valid(), several[0].is_valid())
            if pc.any(both).as_py() or _may_have_nulls(block, column.at):
                return None
        arrays.append(pc.coalesce(*several) if several[1:] else several[0] if several else pa.nulls(len(read), raw))
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])


def _may_have_nulls(block: bytes, places: Iterable[str]) -> bool:
    """Whether a field may be there and null, and not only missing."""
    lasts = b"|".join(re.escape(json.dumps(steps(place)[-1], ensure_ascii=False).encode()) for place in places)
    return b"\\" in block or bool(re.search(rb"(?:%s)\s*:\s*null" % lasts, block))


def _only_lines(block: bytes, keeps: Bools) -> bytes:
    """A block with the lines of some of its rows, the others blank: so lines have the numbers that they had."""
    if keeps.all():
        return block
    answers = iter(keeps.tolist())
    return b"\n".join(text if text.strip() and next(answers) else b"" for text in block.split(b"\n"))


def _with_scales(block: bytes, columns: Sequence[Field], schema: pa.Schema) -> pa.Schema:
    """The schema by which Arrow reads a block: decimals beside their scale are objects, as its first lines show."""
    decimals = [at for at, column in enumerate(columns) if column.decimal]
    if not decimals or b'"scale"' not in block:
        return schema
    texts = set()
    for _, line in islice(_numbered(block, 1), _LINES_SHOWN):
        try:
            row = json.loads(line, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            return schema
        if isinstance(row, _Pairs):
            texts |= {at for at in decimals if isinstance(row.at(columns[at].name)[0], str)}
    for at in decimals:
        if at not in texts:
            schema = schema.set(at, schema.field(at).with_type(_SCALED))
    return schema


def raw_type(declared: ValueType) -> pa.DataType:
    """What a field is before dates, timestamps and bytes are parsed."""
    return pa.string() if declared in _TEXTS else arrow_type(declared)


def line_of(content: Content, row: int) -> int:
    """The line on which a row (from 0) is."""
    return next((line for at, (line, _) in enumerate(_lines(content)) if at == row), 0)


def where(content: Content, line: int) -> str:
    """A line for people; of an array the row that became it, and the line on which it starts."""
    if not _is_array(content):
        return f"line {line}"
    with content.open_text() as source:
        lines = Rows(content.path, source, _beginning(source), content.source.rows).lines()
        return f"row {line}, line {next(islice(lines, line - 1, None))}"


def _is_array(content: Content) -> bool:
    """Whether a file is an array of rows, or an object that has one, and no lines."""
    with content.open_text() as source:
        return bool(content.source.rows) or _begins_array(_beginning(source))


def _beginning(source: Any) -> bytes:
    """The first bytes of a file without its byte-order mark, up to one that is no blank, if it has one soon."""
    first: bytes = source.read(len(_BOM))
    first = first.removeprefix(_BOM)
    while not first.strip() and len(first) < _MOST_BLANKS and (more := source.read(64)):
        first += more
    return first


def _begins_array(beginning: bytes) -> bool:
    return beginning.lstrip().startswith(b"[")


def parsed_lines(content: Content) -> Iterator[tuple[int, Any]]:
    """Each row as Python has it, with its line. Slow: for few rows. Raises BadFile for what is not JSON."""
    for line, text in _lines(content):
        yield line, _loaded(content, line, text)


def _name_lists(content: Content) -> Iterator[list[str]]:
    """The field names of each row."""
    for line, text in _lines(content):
        pairs = _loaded(content, line, text, object_pairs_hook=_Pairs)
        yield [name for name, _ in pairs] if isinstance(pairs, _Pairs) else []


def _loaded(content: Content, line: int, text: bytes, **options: Any) -> Any:
    """A line as Python reads it; BadFile if it cannot."""
    try:
        with memory_is_no_verdict(content.path):
            return json.loads(text.decode(), parse_int=_integer, **options)
    except UnicodeDecodeError:
        raise BadFile(content.path, f"{where(content, line)}: not UTF-8") from None
    except json.JSONDecodeError as error:
        advice = _ONE_A_LINE if text.strip() in (b"[", b"{") else "truncated?"
        raise BadFile(
            content.path, f"{where(content, line)}: not JSON: {error.msg} at column {error.colno}; {advice}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise BadFile(content.path, f"{where(content, line)}: not JSON: {error}; truncated?") from None


def blocks(content: Content, most_lines: int = MAX_CELLS) -> Iterator[bytes]:
    """The lines of a file, many at a time: arrays have a row in each. Raises BadFile."""
    line = 1
    with memory_is_no_verdict(content.path), content.open_text() as text:
        carry, source = _beginning(text), text
        if content.source.rows or _begins_array(carry):
            carry, source = b"", Rows(content.path, text, carry, content.source.rows)
        while chunk := source.read(BLOCK_BYTES):
            # Only a line that began in an earlier chunk can be longer than this one.
            if len(carry) + (chunk.find(b"\n") if b"\n" in chunk else len(chunk)) > MAX_LINE_BYTES:
                raise BadFile(
                    content.path, f"{where(content, line)}: longer than {MAX_LINE_BYTES:,} bytes; is it JSON lines?"
                )
            carry += chunk
            if cut := carry.rfind(b"\n") + 1:
                yield from _pieces(carry[:cut], most_lines)
                line += carry.count(b"\n", 0, cut)
                carry = carry[cut:]
    if carry:
        yield from _pieces(carry, most_lines)


def _pieces(block: bytes, most_lines: int) -> Iterator[bytes]:
    """A block, cut further if it has more lines than may be decoded at once."""
    if block.count(b"\n") <= most_lines:
        yield block
        return
    lines = block.splitlines(keepends=True) if b"\r" not in block else re.findall(rb"[^\n]*\n", block)
    for start in range(0, len(lines), most_lines):
        yield b"".join(lines[start : start + most_lines])


def _lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    line = 1
    for block in blocks(content):
        yield from _numbered(block, line)
        line += block.count(b"\n")


def _numbered(block: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    line, start = first, 0
    while start < len(block):  # one by one: often only the first lines are looked at
        end = block.find(b"\n", start)
        text = block[start : len(block) if end < 0 else end]
        if text.strip():
            yield line, text
        line, start = line + 1, start + len(text) + 1


def _fast(block: bytes, schema: pa.Schema) -> pa.RecordBatch | None:
    """The rows of a block as Arrow reads them; None if that may be wrong."""
    if any(doubtful.search(block) for doubtful in _DOUBTFUL) or not _is_text(block):
        return None
    if b"Inf" in block and block.count(b"Inf") > block.count(b"Infinity"):
        return None
    try:
        table = pa.json.read_json(
            pa.BufferReader(block),
            pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            pa.json.ParseOptions(explicit_schema=nested(schema), unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if table.num_rows != lines and table.num_rows != sum(1 for _ in _numbered(block, 1)):
        return None
    read = leaves(table, schema.names)
    try:
        for column in read.columns:
            if pa.types.is_decimal(column.type):
                column.validate(full=True)  # Arrow takes 1234.5 for a decimal(5, 2), of six digits then
    except pa.ArrowInvalid:
        return None
    if any(pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py() for column in read.columns):
        return None  # Infinity, or an integer of hundreds of digits.
    return read


def _exact(
    content: Content, block: bytes, first: int, columns: Sequence[Field], schema: pa.Schema, placeholder: str | None
) -> pa.RecordBatch:
    """The rows of a block, line by line. Raises BadFile at the first line that is wrong."""
    values: list[list[Any]] = [[] for _ in columns]
    for line, text in _numbered(block, first):
        if not _is_text(text):
            raise BadFile(content.path, f"{where(content, line)}: {_not_text(text, columns)}")
        pairs = _loaded(content, line, text, object_pairs_hook=_Pairs, parse_float=Literal)
        if not isinstance(pairs, _Pairs):
            raise BadFile(content.path, f"{where(content, line)}: not a JSON object: {_as_json(pairs)}; {_ONE_A_LINE}")
        for cells, column in zip(values, columns, strict=True):
            cell, problem = _cell_of(pairs, column, placeholder)
            if problem:
                raise BadFile(content.path, f"{where(content, line)}: column {column.name} {problem}")
            cells.append(cell)
    arrays = [pa.array(cells, field.type) for cells, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cell_of(pairs: _Pairs, column: Field, placeholder: str | None) -> tuple[Any, str]:
    """A column of a row as Arrow takes it, and what is wrong with it."""
    if len(column.at) == 1:
        return _cell_at(pairs, column.at[0], column, placeholder)
    places = [place for place in column.at if pairs.has(place)]
    cells: list[Any] = []
    for place in places:
        cell, problem = _cell_at(pairs, place, column, placeholder)
        if problem:
            return None, problem
        cells.append(cell)
    for place, cell in zip(places, cells, strict=True):
        if cell != cells[0]:
            values = [_as_written(pairs.at(each)[0]) for each in (places[0], place)]
            return None, different(places[0], values[0], place, values[1])
    return cells[0] if cells else None, ""


def _cell_at(pairs: _Pairs, place: str, column: Field, placeholder: str | None) -> tuple[Any, str]:
    value, twice = pairs.at(place)
    problem = twice or _problem(value, column)
    if not problem:
        try:
            return _cell(value, column, placeholder), ""
        except ValueError as error:
            problem = _complaint(value, column, error)
    return None, problem + (column.advice if type(value) is int and not twice else "")


def _integer(text: str) -> int | Literal:
    """An integer; one of more digits than Python turns into a number stays as it is written."""
    return int(text) if len(text) <= _MOST_DIGITS else Literal(text)


def _is_text(block: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _not_text(text: bytes, columns: Sequence[Field]) -> str:
    """What is wrong with a line that is not UTF-8: the column that holds such bytes, if one does."""
    try:
        pairs = json.loads(text.decode("utf-8", "surrogateescape"), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return "not UTF-8"
    for column in columns if isinstance(pairs, _Pairs) else ():
        value, _ = pairs.at(column.name)
        if isinstance(value, str) and any("\udc80" <= letter <= "\udcff" for letter in value):
            return f"column {column.name} is declared {column.declared} and holds bytes that are not UTF-8"
    return "not UTF-8"


def _cell(value: Any, column: Field, placeholder: str | None) -> Any:
    """A JSON value that may be of the declared type as Arrow takes it. Raises NotJson, NotBase64 and NoDecimal."""
    if value is None:
        return None
    if column.type is ColumnType.FLOAT:
        return float(value)
    if isinstance(column.type, DecimalType):
        number = value.text if isinstance(value, Literal) else value
        return decimals.from_units(decimals.units(number, column.type), column.type.scale)
    if column.decimal and isinstance(value, _Pairs):
        units = variable_scale(value.last.get("scale"), value.last.get("value"), column.decimal)
        return encoded_bytes.encoded(decimals.unscaled(units))
    if column.type is not ColumnType.JSON:
        return value
    if placeholder is not None and isinstance(value, str) and value != placeholder:
        return or_null(canonical_json.canonical(value))
    return or_null(canonical_json.written(value))


def _complaint(value: Any, column: Field, error: Exception) -> str:
    if isinstance(error, NotJson):
        return f"is declared json and holds {error}"
    which_is = "which is " if isinstance(error, encoded_bytes.NotBase64) else ""
    return f"is declared {column.declared} and holds {_as_written(value)}, {which_is}{error}"


def _as_written(value: Any) -> str:
    if isinstance(value, Literal):
        return shorter(value.text)
    return shown(value) if isinstance(value, str) else shorter(_as_json(value))


def _as_json(value: Any) -> str:
    """A value for a message as a file has it: not Python's True, and not the pairs that an object is here."""

    def plain(node: Any, level: int) -> Any:
        if isinstance(node, list) and level == _LEVELS_SHOWN:
            return "…"
        if isinstance(node, _Pairs):
            return {name: plain(one, level + 1) for name, one in node[:_SHOWN]}
        return [plain(one, level + 1) for one in node[:_SHOWN]] if isinstance(node, list) else node

    return shorter(json.dumps(plain(value, 0), ensure_ascii=False))


def _problem(value: Any, column: Field) -> str | None:
    """Why a JSON value cannot be of a declared type, or None."""
    declared = column.type
    if value is None or declared is ColumnType.JSON:
        return None
    complaint = f"is declared {column.declared} and holds {_as_written(value)}"
    if isinstance(declared, DecimalType):
        if isinstance(value, int | Literal | str) and not isinstance(value, bool):
            return None
        return complaint + SCALED if isinstance(value, _Pairs) and "scale" in value.last else complaint
    if declared is ColumnType.BOOL:
        return None if isinstance(value, bool) else complaint
    if declared in _TEXTS:
        if column.decimal and isinstance(value, _Pairs):
            twice = value.at("scale")[1] or value.at("value")[1]
            return f"{complaint}, of which one {twice}" if twice else None
        if not isinstance(value, str):
            return complaint
        return "holds half a surrogate pair, which is not Unicode text" if _broken(value) else None
    if declared is ColumnType.FLOAT and value in _NO_NUMBERS:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return complaint
    if declared is ColumnType.FLOAT:
        return (
            None
            if abs(value) <= sys.float_info.max or not isinstance(value, int | Literal)
            else f"{complaint}, which is beyond a double"
        )
    if isinstance(value, float):
        whole = isinstance(value, Literal) and value.text.lstrip("-").isdigit()
        return complaint + _OVERFLOW if whole else complaint
    return None if -(2**63) <= value < 2**63 else complaint + _OVERFLOW


def _broken(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def present(content: Content, places: Mapping[str, Sequence[str]], taken: Iterable[Bools] = ()) -> set[str]:
    """Of some columns, each with the paths where it may be, those that at least one row has, or one that is `taken`."""
    seen: set[str] = set()
    lasts = {name: [json.dumps(steps(path)[-1]).encode() for path in paths] for name, paths in places.items()}
    lines = _lines(content) if places else iter(())
    for line, text in compress(lines, chain.from_iterable(taken)) if taken else lines:
        escaped = not text.isascii() or b"\\" in text
        waiting = [name for name in places if name not in seen and (escaped or any(x in text for x in lasts[name]))]
        if waiting:
            row = _loaded(content, line, text, object_pairs_hook=_Pairs)
            seen |= {name for name in waiting if any(row.has(path) for path in places[name])}
        if len(seen) == len(places):
            break
    return seen


class _Pairs(Pairs):
    """The object that a row is, and those within it."""

    @cached_property
    def last(self) -> dict[str, Any]:
        """The last value of each name."""
        return dict(self)

    def has(self, path: str) -> bool:
        """Whether something is at a path, if only a null."""
        value: Any = self
        for step in steps(path):
            if not isinstance(value, _Pairs) or step not in value.last:
                return False
            value = value.last[step]
        return True

    def at(self, path: str) -> tuple[Any, str | None]:
        """What is at a path (None if nothing is), and what is wrong on the way there."""
        value: Any = self
        for step in steps(path):
            if value is None:
                break
            if not isinstance(value, _Pairs):
                return None, f"is looked for in an object, found {_as_written(value)}"
            if len(value.last) < len(value) and sum(name == step for name, _ in value) > 1:
                return None, "is written twice"
            value = value.last.get(step)
        return value, None

"""How texts are written: dialects of CSV, compressed files, arrays of JSON. What is read, and what is refused where."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.measured import Measure
from tests.pure.ingest.landed import PACKED, collection, decoded, listed
from tidemark.arrow.decode import content, csvtext, jsonarray
from tidemark.arrow.decode.source import BadFile, names_of
from tidemark.arrow.kernels import density
from tidemark.errors import InvalidUsage, Unavailable
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Envelope, Format, Source
from tidemark.model.dialect import SUFFIXES, Csv
from tidemark.model.interval import Interval
from tidemark.plan.tasks import IngestTask

pytestmark = pytest.mark.pure
N, S = Column("n", ColumnType.INT), Column("s", ColumnType.STRING)
D, F = Column("d", DecimalType(9, 2)), Column("f", ColumnType.FLOAT)
JSONL, CSV = Format.JSONL, Format.CSV
EURO = {"delimiter": ";", "decimal": ",", "thousands": "."}
ESCAPED = {"escape": "\\", "null": ("", "NULL", "\\N")}
BARE = {"header": False, "names": ("k", "n", "s")}
QUOTELESS = {"delimiter": "|", "quote": ""}


def declared(columns: list[Column], file_format: Format = CSV, **words: Any) -> Collection:
    things = collection(*columns, file_format=file_format, time=None)
    return replace(things, origin=replace(things.landed, source=replace(things.landed.source, **words)))


def rows_of(path: Path, data: bytes, things: Collection) -> list[tuple[Any, ...]]:
    """The rows of a file without their keys and places."""
    path.write_bytes(data)
    return [tuple(row.values())[1:-1] for row in decoded(path, things).to_pylist()]


READ: list[tuple[str, dict[str, Any], list[Column], bytes, list[tuple[Any, ...]]]] = [
    ("delimiter", {"delimiter": ";"}, [S], b'k;s\n1;a,b\n2;"c;d"\n', [("a,b",), ("c;d",)]),
    ("tab", {"delimiter": "\t"}, [S], b"k\ts\n1\ta b\n", [("a b",)]),
    ("quote", {"quote": "'"}, [S], b"k,s\n1,'a,''b'\n2,a\"b\n", [("a,'b",), ('a"b',)]),
    ("no quotes", QUOTELESS, [S], b'k|s\n1|a"b"\n2|"\n3|""\n4|it\'s\n', [('a"b"',), ('"',), ('""',), ("it's",)]),
    ("escapes", ESCAPED, [N, S], b'k,n,s\n1,\\N,"say \\"hi\\""\n2,1,a\\,b\\\nc\\\\\n3,,"x\\\\"\n',
     [(None, 'say "hi"'), (1, "a,b\nc\\"), (None, "x\\")]),
    ("escape and doubled quotes", ESCAPED, [S], b'k,s\n1,"a""b\\"c"\n', [('a"b"c',)]),
    ("escapes without quotes", QUOTELESS | {"escape": "\\", "null": ("\\N",)}, [S],
     b'k|s\n1|a\\|b"\n2|\\N\n3|\\\\N\n', [('a|b"',), (None,), ("\\N",)]),
    ("null of every type", {"null": ("", "NULL")}, [N, S], b'k,n,s\n1,NULL,NULL\n2,,\n3,1,"NULL"\n4,2,""\n',
     [(None, None), (None, None), (1, "NULL"), (2, "")]),
    ("null of one column", {"null": ("-",)}, [S], b'k,s\n1,-\n2,"-"\n3,\n', [(None,), ("-",), ("",)]),
    ("latin-1", {"encoding": "latin-1"}, [S], "k,s\n1,ä£\x85\n".encode("latin-1"), [("ä£\x85",)]),
    ("utf-16", {"encoding": "utf-16"}, [S], "k,s\n1,€\n".encode("utf-16"), [("€",)]),
    ("utf-16-le with a mark", {"encoding": "UTF-16LE"}, [S], "\ufeffk,s\n1,€\n".encode("utf-16-le"), [("€",)]),
    ("a delimiter within letters", {"encoding": "shift_jis", "delimiter": "|"}, [S], "k|s\n1|ポ\n".encode("shift_jis"),
     [("ポ",)]),
    ("decimal comma", EURO, [D, F, N], b"k;d;f;n\n1;1.234,50;1,5;1.000\n2;-1,2;1e3;12\n3;,5;nan;-1.000.000\n4;;;\n",
     [(Decimal("1234.50"), 1.5, 1000), (Decimal("-1.20"), 1000.0, 12), (Decimal("0.50"), pytest.approx(float("nan"),
      nan_ok=True), -1_000_000), (None, None, None)]),
    ("thousands as the delimiter", {"thousands": ","}, [N], b'k,n\n1,"1,234"\n', [(1234,)]),
    ("thousands of another letter", {"thousands": "\u202f"}, [D], "k,d\n1,1\u202f234.5\n".encode(),
     [(Decimal("1234.50"),)]),
    ("no header", BARE, [N, S], b"1,1,a\n2,,b", [(1, "a"), (None, "b")]),
    ("no header behind a mark", BARE, [N, S], b"\xef\xbb\xbf\n1,1,a\n", [(1, "a")]),
    ("no header and no rows", BARE, [N, S], b"", []),
    ("no header and one column", {"header": False, "names": ("k",)}, [], b"1\n2\n", [(), ()]),
    ("names in place of the header", {"names": ("k", "n", "s")}, [N, S], b"a b,_id,s\n1,1,x\n", [(1, "x")]),
    ("skipped rows", {"skip_rows": 2}, [S], b'report of "x\n\nk,s\n1,a\n', [("a",)]),
    ("skipped rows of other ends", {"skip_rows": 2}, [S], b"a\r\nb\rk,s\r\n1,a\r\n", [("a",)]),
    ("comments", {"comment": "#"}, [S], b'# it\'s "x\nk,s\n1,"a\n# b"\n#\n2,#c\n#', [("a\n# b",), ("#c",)]),
    ("comments of one column", {"comment": "#", "null": ("",)}, [], b"#a\nk\n1\n#b\n2\n", [(), ()]),
    ("everything", {"delimiter": ";", "quote": "'", "escape": "\\", "encoding": "latin-1", "null": ("NULL", "\\N"),
     "decimal": ",", "thousands": ".", "header": True, "names": ("k", "n", "s"), "skip_rows": 1, "comment": "#"},
     [N, S], "x\na;b;c\n# '\n1;1.000;'\\'ä'\n2;\\N;NULL\n".encode("latin-1"), [(1000, "'ä"), (None, None)]),
]  # fmt: skip


@pytest.mark.parametrize("block", [2**20, 7])
@pytest.mark.parametrize("case", READ, ids=[case[0] for case in READ])
def test_a_file_of_another_dialect_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...], block: int
) -> None:
    """Also in pieces of a few bytes, which cut records, escapes and letters."""
    _, words, columns, data, rows = case
    monkeypatch.setattr(csvtext, "_READ_BYTES", block)
    assert rows_of(tmp_path / "a.csv", data, declared(columns, csv=Csv(**words))) == rows


REFUSED: list[tuple[str, dict[str, Any], list[Column], bytes, str]] = [
    ("another delimiter", {"delimiter": ";"}, [N], b"k,n\n1,2\n",
     '^column k is missing; the file has k,n, and semicolons separate fields; write .*delimiter: ","}}$'),
    ("stray quote", {"quote": "'"}, [S], b"k,s\n1,it's\n", "^line 2: a text that is not quoted contains a '; write it"),
    ("letters escaped", ESCAPED, [S], b'k,s\n1,"a\nb"\n2,c:\\new\n',
     r"^line 4: \\n: an escape is written before delimiter, quote, escape or line break$"),
    ("null that is not declared", {"escape": "\\"}, [S], b"k,s\n1,\\N\n",
     r"^line 2: \\N: .*; if the field is null, add it"),
    ("null in quotes", ESCAPED, [S], b'k,s\n1,"\\N"\n', r"^line 2: \\N: an escape is written before"),
    ("escape at the end", ESCAPED, [S], b"k,s\n1,a\\", r"^line 2: \\: an escape"),
    ("open quote", ESCAPED, [S], b'k,s\n1,"a\\"\n', "^line 2: a quoted text is never closed; truncated"),
    ("empty, and not null", {"null": ("NULL",)}, [N], b"k,n\n1,\n",
     '^line 2: column n is declared int and holds \'\'; to have empty fields null, add "" to csv.null$'),
    ("null key", {"null": ("-",)}, [S], b"k,s\n-,a\n", "^line 2: column k is null; a key never is$"),
    ("not latin-1", {"encoding": "cp1252"}, [S], b"k,s\n1,a\n2,\x81\n",
     "^line 3: not cp1252: byte 0x81; is that its enc"),
    ("half a letter", {"encoding": "utf-16-le"}, [S], "k,s\n1,a\n".encode("utf-16-le")[:-1], "^line 2: not utf-16-le"),
    ("no mark", {"encoding": "utf-16"}, [S], "k,s\n".encode("utf-16-be"),
     "^line 1: not utf-16: UTF-16 stream does not"),
    ("another point", EURO, [D], b"k;d\n1;1.5\n",
     "^line 2: column d is declared decimal.9, 2. and holds '1.5'; its decimal point is ',', and '.' groups thr"),
    ("two points", {"delimiter": ";", "decimal": ","}, [F], b"k;f\n1;1,5\n2;1,2,3\n",
     "^line 3: .*holds '1,2,3'; its decimal"),
    ("a point", {"delimiter": ";", "decimal": ","}, [F], b"k;f\n1;1.5\n",
     "^line 2: column f .*holds '1.5'; its decimal"),
    ("too many digits", EURO, [D], b"k;d\n1;1,234\n", "^line 2: .* holds '1,234', which has 3 digits behind the point"),
    ("a fraction of an int", EURO, [N], b"k;n\n1;1,0\n", "^line 2: column n is declared int and holds '1,0'$"),
    ("a group of an int", {"thousands": "_"}, [N], b"k,n\n1,1_0\n",
     "^line 2: .* holds '1_0'; its decimal point is '.', and"),
    ("overflow in groups", {"thousands": "_"}, [N], b"k,n\n1,9_223_372_036_854_775_808\n",
     "holds 9_223_.*: integer overflow"),
    ("short row without a header", BARE, [N], b"1,1,a\n2,b\n", "^line 2: 2 fields, csv.names has 3; truncated"),
    ("misfit without a header", BARE, [N], b"1,1,a\n2,b,c\n", "^line 2: column n is declared int and holds 'b'$"),
    ("missing from names", BARE, [N, F], b"1,1,a\n", "^column f is missing; the file has k, n, s; if it"),
    ("another header", {"names": ("k", "n", "s")}, [N], b"k,n\n1,2\n",
     "^the header has 2 fields, k, n; csv.names has 3$"),
    ("misfit behind skipped rows", {"skip_rows": 2}, [N], b"a\nb\nk,n\n1,1\n2,x\n", "^line 5: column n"),
    ("fewer lines than are skipped", {"skip_rows": 3}, [N], b"a\nb", "^has 2 lines, and skip_rows is 3; truncated"),
    ("no lines", BARE | {"skip_rows": 1}, [N], b"", "^has 0 lines, and skip_rows is 1; truncated"),
    ("all lines are skipped", {"skip_rows": 2}, [N], b"a\nb\n", "^is empty; a CSV file starts with a header$"),
    ("misfit behind comments", {"comment": "#"}, [N], b'#"\nk,n\n1,1\n#\n\n#a\n2,"x"\n',
     "^line 7: column n is declared int"),
    ("quote behind comments", {"comment": "#"}, [S], b'#"\nk,s\n#\n1,a"\n', "^line 4: a text that is not quoted"),
    ("short row behind comments", {"comment": "#"}, [S], b'#"\nk,s\n#\n1\n', "^line 4: 1 fields, the header has 2"),
    ("a long row", {"escape": "\\"}, [S], b"k,s\n1,a\n2," + b"\\\\" + b"x" * 2**24,
     "^line 3: longer than 16,777,216 bytes"),
    ("an open quote for long", {"escape": "\\"}, [S], b'k,s\n1,"' + b"x\n" * 2**23 + b"x",
     "^line 2: longer than 16,777,216"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "columns", "data", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_does_not_fit_a_dialect_is_refused_with_its_line(
    tmp_path: Path, words: dict[str, Any], columns: list[Column], data: bytes, says: str
) -> None:
    with pytest.raises(BadFile) as caught:
        rows_of(tmp_path / "a.csv", data, declared(columns, csv=Csv(**words)))
    assert re.search(says, caught.value.reason), caught.value.reason


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"delimiter": ""}, "delimiter is ''; write one character"),
        ({"delimiter": "||"}, "delimiter is '||'; write one character of ASCII"),
        ({"delimiter": "\\t"}, r"""delimiter is '\\t'; write "\t", in double quotes"""),
        ({"delimiter": "§"}, "delimiter is '§'; write one character of ASCII"),
        ({"quote": "x"}, "quote is 'x'; write one character of ASCII, no letter or digit"),
        ({"delimiter": '"'}, "delimiter and quote are both '\"'; change one of them"),
        ({"escape": '"'}, "quote and escape are both '\"'; leave escape out: a quote within quotes is written twice"),
        ({"quote": "", "comment": '"'}, "quote and comment are both '\"'; change one of them"),
        ({"encoding": "latin1252"}, "encoding is 'latin1252', which is no encoding of text"),
        ({"encoding": "rot13"}, "encoding is 'rot13', which is no encoding of text"),
        ({"encoding": "base64"}, "encoding is 'base64', which is no encoding of text"),
        ({"null": ("a,b",)}, "null 'a,b' has a delimiter, a quote or a line break"),
        ({"decimal": ";"}, "decimal is ';'; it must be '.' or ','"),
        ({"thousands": "."}, "thousands is '.', and decimal '.'; thousands must be another character"),
        ({"thousands": "0"}, "thousands is '0'"),
        ({"header": False}, "header: false needs names"),
        ({"names": ("a", "b", "a")}, "names has 'a' twice"),
        ({"skip_rows": -1}, "skip_rows is -1; it must be from 0 to 10,000"),
    ],
)
def test_a_dialect_that_is_none_is_refused(words: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidUsage) as caught:
        Csv(**words)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("file_format", "words", "says"),
    [
        (CSV, {"compression": "zip"}, "compression is 'zip'; it must be one of auto, none, gzip, zstd, bz2, lz4, xz"),
        (Format.PARQUET, {"compression": "gzip"}, "compression belongs to csv and jsonl; parquet is compressed within"),
        (JSONL, {"csv": Csv(delimiter=";")}, "csv says how CSV is written, and format is jsonl; remove csv"),
        (CSV, {"rows": "data"}, "rows names a field of JSON, and format is csv; remove rows"),
    ],
)
def test_words_of_another_format_are_refused(file_format: Format, words: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidUsage) as caught:
        Source("/x/*", file_format, Envelope.APPEND, **words)
    assert str(caught.value).startswith(says)


TEXTS = {CSV: b"k,n,s\n1,5,a\n2,,b\n", JSONL: b'{"k":1,"n":5,"s":"a"}\n{"k":2,"n":null,"s":"b"}\n'}
ROWS = [(5, "a"), (None, "b")]
BY_SUFFIX = [(suffix, PACKED[name]) for suffix, name in SUFFIXES.items()]


@pytest.mark.parametrize("file_format", TEXTS)
@pytest.mark.parametrize(("suffix", "packed"), BY_SUFFIX)
def test_a_compressed_file_is_read(
    tmp_path: Path, file_format: Format, suffix: str, packed: Callable[[bytes], bytes]
) -> None:
    """By the end of its name, in any case, or by declaration; of several streams; larger than what is read at once."""
    text = TEXTS[file_format]
    things = declared([N, S], file_format)
    assert rows_of(tmp_path / f"A.{suffix.upper()}", packed(text), things) == ROWS
    assert rows_of(tmp_path / f"b{suffix}", packed(text[:9]) + packed(text[9:]), things) == ROWS
    by_word = declared([N, S], file_format, compression=SUFFIXES[suffix])
    assert rows_of(tmp_path / "c.txt", packed(text), by_word) == ROWS
    assert rows_of(tmp_path / f"d{suffix}", text, things) == ROWS, "who fetched it unpacked it, and kept its name"
    assert rows_of(tmp_path / f"e{suffix}", text, declared([N, S], file_format, compression="none")) == ROWS
    many = text + text[text.index(b"\n") + 1 :] * 20_000 if file_format is CSV else text * 20_000
    assert len(rows_of(tmp_path / f"f{suffix}", packed(many), things)) >= 40_000


@pytest.mark.parametrize(("suffix", "packed"), BY_SUFFIX)
def test_a_compressed_file_that_is_not_whole_is_refused(
    tmp_path: Path, suffix: str, packed: Callable[[bytes], bytes]
) -> None:
    name, data = SUFFIXES[suffix], packed(TEXTS[CSV] * 99)
    for wrong in (data[:-3], data[: len(data) // 2], data + b"junk"):
        with pytest.raises(BadFile, match=rf"cannot be unpacked \({name}\): .*; truncated\?$"):
            rows_of(tmp_path / f"a{suffix}", wrong, declared([N, S]))
    for wrong, is_now in ((TEXTS[CSV], "none"), (PACKED["xz" if name != "xz" else "gzip"](b"x"), "xz|gzip")):
        with pytest.raises(
            BadFile, match=rf"is not compressed with {name}, as compression says; write ({is_now}), or auto"
        ):
            rows_of(tmp_path / "a", wrong, declared([N, S], compression=name))
    with pytest.raises(
        BadFile, match=f"is compressed with {name}; unpack it, or write source: {{compression: {name}}}"
    ):
        rows_of(tmp_path / "a.csv", data, declared([N, S]))


def test_a_storage_that_fails_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(pa.PythonFile):  # type: ignore[misc]
        def read_buffer(self, _size: int | None = None) -> pa.Buffer:
            raise OSError(5, "Input/output error")

    path, things = tmp_path / "a.csv.gz", declared([N, S])
    path.write_bytes(PACKED["gzip"](TEXTS[CSV] * 10_000))
    file = listed(path)
    unread = content.Content(file, "", file.bytes, None, source=things.landed.source)
    assert names_of(unread, things.landed.source) == ["k", "n", "s"]
    real, opened = content.open_source, 0

    def failing(name: str) -> Any:
        nonlocal opened
        opened += 1
        return real(name) if opened == 1 else Failing(open(name, "rb"), mode="r")  # noqa: PTH123

    monkeypatch.setattr(content, "open_source", failing)
    with pytest.raises(Unavailable, match="cannot be read: Input/output error"):
        names_of(replace(unread), things.landed.source)


@pytest.mark.parametrize("name", ["xz", "zstd", "gzip"])
@pytest.mark.measured
def test_what_is_small_at_rest_and_large_as_text_takes_bounded_memory(
    tmp_path: Path, name: str, measure: Measure
) -> None:
    """A row that never ends is refused while it is unpacked; rows come block by block."""
    path = tmp_path / "a"
    path.write_bytes(PACKED[name](b"k,n,s\n1,2," + b"x" * 2**28))
    before = pa.total_allocated_bytes()
    with pytest.raises(BadFile, match="line 2: longer than 16,777,216 bytes"):
        decoded(path, declared([N, S], compression=name))
    measure.below("in Arrow's memory", (pa.default_memory_pool().max_memory() - before) // 2**20, 256, "MiB")


ARRAYS: list[tuple[str, dict[str, Any], bytes, list[tuple[Any, ...]] | str]] = [
    ("one line", {}, b'[{"k":1,"n":5,"s":"a"},{"k":2,"n":null,"s":"b"}]', ROWS),
    ("printed for people", {}, b' \n[\n {"k":1,\n "n":5,"s":"a"}\n,\r\n{"k":2,"n":null,"s":"b"}\n]\n', ROWS),
    ("behind a mark", {}, b'\xef\xbb\xbf[{"k":1,"n":5,"s":"a"}]', ROWS[:1]),
    ("empty", {}, b"[ ]\n", []),
    ("texts that look like ends", {}, b'[{"k":1,"n":5,"s":"]}\\n,[{"}]', [(5, "]}\n,[{")]),
    ("a field", {"rows": "data"}, b'{"m":{"data":[1]},"data":[{"k":1,"n":5,"s":"a"}],"next":12}', ROWS[:1]),
    ("a misfit", {}, b'[{"k":1,"n":5,"s":"a"},\n {"k":2,\n"n":"x","s":"b"}]',
     "^row 2, line 2: column n is declared int"),
    ("a null key", {}, b'[{"k":1,"n":5,"s":"a"},\n\n {"k":null,"n":1,"s":"b"}]', "^row 2, line 3: column k is null"),
    ("a name twice", {}, b'[{"k":1,"n":5,"s":"a","s":"b"}]', "^row 1, line 1: column s is written twice"),
    ("no object", {}, b'[{"k":1,"n":5,"s":"a"},\n5]', "^line 2: not a JSON object: 5; an array has one object a row"),
    ("null", {}, b"[null]", "^row 1, line 1: not a JSON object: null"),
    ("truncated within", {}, b'[{"k":1,"n":5,"s":"a"},\n{"k":2,', "^line 2: not JSON: .* at column 8; truncated"),
    ("truncated behind a row", {}, b'[{"k":1,"n":5,"s":"a"}',
     "^line 1: not JSON: , or ] is expected, found the end; trunc"),
    ("a comma more", {}, b'[{"k":1,"n":5,"s":"a"},]', "^line 1: not JSON: ] follows a comma"),
    ("two arrays", {}, b'[{"k":1,"n":5,"s":"a"}]\n[]',
     "^line 2: something follows the value that the file is; is it JSON"),
    ("not UTF-8", {}, b'[{"k":1,"n":5,"s":"a"},\n{"k":1,"n":5,"s":"\xff"}]', "^line 2: not UTF-8"),
    ("too deep", {}, b"[" * 100_000, "^line 1: not JSON: too many levels"),
    ("no such field", {"rows": "data"}, b'{"meta":{},"page":1}', "^rows is data, and the file has meta, page$"),
    ("a field twice", {"rows": "data"}, b'{"data":[],"data":[]}', "^line 1: data is written twice"),
    ("a field that is no array", {"rows": "data"}, b'{"data":null}',
     "^line 1: rows is data, which is null, and no array"),
    ("no object around", {"rows": "data"}, b"[]",
     "^line 1: rows is data, and the file is no object; leave rows out for an"),
    ("nothing", {"rows": "data"}, b"", "^line 1: rows is data, and the file is no object"),
    ("behind the object", {"rows": "data"}, b'{"data":[]}\n{"data":[]}', "^line 2: something follows"),
    ("no name", {"rows": "data"}, b'{"data" []}', "^line 1: not JSON: a name, and a colon behind it, are expected"),
    ("a long row", {}, b'[{"k":1,"n":5,"s":"' + b"x" * 2**24 + b'"}]', "^line 1: longer than 16,777,216 bytes"),
]  # fmt: skip


@pytest.mark.parametrize("block", [2**20, 5])
@pytest.mark.parametrize("case", ARRAYS, ids=[case[0] for case in ARRAYS])
def test_an_array_of_json_is_read_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...], block: int
) -> None:
    _, words, data, outcome = case
    monkeypatch.setattr(jsonarray, "_READ_BYTES", block if len(data) < 1000 else 2**20)
    things = declared([N, S], JSONL, **words)
    if isinstance(outcome, list):
        assert rows_of(tmp_path / "a.json", data, things) == outcome
        return
    with pytest.raises(BadFile) as caught:
        rows_of(tmp_path / "a.json", data, things)
    assert re.search(outcome, caught.value.reason), caught.value.reason


def test_an_array_without_line_ends_may_be_larger_than_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(content, "MAX_ROW_BYTES", 1000)
    data = json.dumps([{"k": at, "n": at, "s": "x" * 50} for at in range(20_000)]).encode()
    assert len(rows_of(tmp_path / "a.json", data, declared([N, S], JSONL))) == 20_000


@pytest.mark.parametrize(("suffix", "packed"), BY_SUFFIX)
def test_the_density_of_a_compressed_file_is_that_of_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, packed: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(density, "SAMPLED_BYTES", 1)
    path = tmp_path / f"a.csv{suffix}"
    lines = b"".join(b"%d,%d,%s\n" % (at, at * 7919 % 100_003, str(at * 104_729).encode()) for at in range(60_000))
    path.write_bytes(packed(b"k,n,s\n" + lines))
    things = declared([N, S])
    task = IngestTask(things, Interval(0, 9), (listed(path),), 0, 0, 0, "b", "d")
    sample: Any = density.density_of(None, [task])  # type: ignore[arg-type]
    assert sample.rows * path.stat().st_size == pytest.approx(60_000, rel=0.6)

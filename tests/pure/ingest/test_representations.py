"""Every type in every way that files write it, by envelope and format: type × representation × result.

What is expected is said by Python's `datetime` and `decimal`, of times as whole microseconds or days.
"""

from __future__ import annotations

import csv
import io
import json
import math
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pure.ingest.landed import decoded
from tidemark.arrow.decode.source import BadFile
from tidemark.config.collection_file import load
from tidemark.model.collection import Collection

pytestmark = pytest.mark.pure

US = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
NOON = datetime(2024, 2, 29, 12, 30, 45, 123456, UTC)
INFINITY, MINUS_INFINITY = 9223372036825200000, -9223372036832400000
"""As Debezium's connector for PostgreSQL writes them, in µs."""
PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
WAYS = [
    *(
        (envelope, form)
        for envelope in ("append", "updates", "upsert", "snapshot")
        for form in ("csv", "jsonl", "parquet")
    ),
    ("debezium", "jsonl"),
    ("debezium", "parquet"),
]


@dataclass(frozen=True)
class Case:
    """A value as each format writes it (None: it cannot), and what is taken for it, or how the refusal begins."""

    column: dict[str, Any]
    json: str | None
    csv: str | None
    parquet: pa.Array | None
    result: Any = None
    refused: str = ""

    def written(self, form: str) -> Any:
        return {"csv": self.csv, "jsonl": self.json, "parquet": self.parquet}[form]

    def __str__(self) -> str:
        return f"{self.column} {self.json or self.csv or self.parquet.to_pylist()}"


def micros(at: datetime) -> int:
    return (at - EPOCH) // US


def days(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def number(column: dict[str, Any], value: int, **more: Any) -> Case:
    """A value that is an integer in every format."""
    return Case(column, str(value), str(value), pa.array([value], pa.int64()), **more)


def text(column: dict[str, Any], value: str, *, parquet: bool = False, **more: Any) -> Case:
    return Case(column, json.dumps(value), value, pa.array([value]) if parquet else None, **more)


def counted() -> Iterator[Case]:
    """Numbers that count since the epoch."""
    for unit, per_second in PER_SECOND.items():
        column = {"type": "timestamp", "unit": unit}
        for at in (NOON, EPOCH - timedelta(seconds=1), EPOCH):
            whole = micros(at) * per_second // 10**6 if per_second <= 10**6 else micros(at) * 1000
            yield number(column, whole, result=whole * 10**6 // per_second)
    yield number({"type": "timestamp", "unit": "ns"}, 1001, refused="is declared timestamp and holds nanoseconds that")
    for day in (date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)):
        yield number({"type": "date", "unit": "days"}, days(day), result=days(day))
    for column, said in (("timestamp", "ms"), ("date", "days")):
        declared = {"type": column, "unit": said}
        yield text(declared, "2024-02-29", refused=f"is declared {column} (unit: {said}) and holds '2024-02-29'")
        for form in ("1.5", "1e3"):
            yield Case(declared, form, form, None, refused=f"is declared {column} (unit: {said}) and holds ")
    of_ms = {"type": "timestamp", "unit": "ms"}
    yield Case(of_ms, "null", "", pa.array([None], pa.int64()), result=None)
    yield Case(of_ms, None, None, pa.array([7], pa.int32()), result=7000)
    yield Case(of_ms, None, None, pa.array([NOON], pa.timestamp("us")), result=micros(NOON))
    yield Case(of_ms, None, None, pa.array([1.5]), refused="is declared timestamp, the file has double")
    yield Case(of_ms, str(2**63), str(2**63), pa.array([2**63], pa.uint64()), refused="is declared ")
    for bare in ("timestamp", "date"):
        advice = f"is declared {bare}"
        yield Case({"type": bare}, "5", None, pa.array([5]), refused=advice)


def far(column: str, policy: str | None, side: int, exact: int | None) -> dict[str, Any]:
    """What becomes of a time that is before the years 1 to 9999 (side −1), in them (0) or after them (1)."""
    ends = (days(FIRST.date()), days(LAST.date())) if column == "date" else (micros(FIRST), micros(LAST))
    if side and policy in ("null", "clip"):
        return {"result": None if policy == "null" else ends[side > 0]}
    if exact is None or (side and policy == "refuse"):
        return {"refused": f"is declared {column} and holds "}
    return {"result": exact}


def far_times() -> Iterator[Case]:
    year_10000 = micros(LAST) + 1
    in_units = [
        ("us", INFINITY, 1, INFINITY),
        ("us", 2**63 - 1, 1, 2**63 - 1),
        ("us", MINUS_INFINITY, -1, MINUS_INFINITY),
        ("ms", INFINITY // 1000, 1, INFINITY // 1000 * 1000),
        ("ms", INFINITY, 1, None),
        ("ms", year_10000 // 1000, 1, year_10000),
        ("ms", year_10000 // 1000 - 1, 0, year_10000 - 1000),
        ("s", micros(FIRST) // 10**6 - 1, -1, micros(FIRST) - 10**6),
        ("s", micros(FIRST) // 10**6, 0, micros(FIRST)),
        ("ns", (2**63 - 1) // 1000 * 1000, 0, (2**63 - 1) // 1000),
    ]
    texts = [
        ("infinity", 1, None),
        ("-infinity", -1, None),
        ("Infinity", 1, None),
        ("+10000-01-01T00:00:00Z", 1, None),
        ("294247-01-10T04:00:54.775807Z", 1, None),
        ("10000-02-29 00:00:00", 1, None),
        ("-0043-03-15T12:00:00Z", -1, None),
        ("0044-03-15 12:00:00 BC", -1, None),
        ("0000-06-01T00:00:00", -1, micros(FIRST) - 214 * 86_400 * 10**6),
        ("9999-12-31T23:59:59-05:00", 1, year_10000 + (5 * 3600 - 1) * 10**6),
        ("9999-12-31T23:59:59.999999Z", 0, micros(LAST)),
        ("2024-02-29T12:30:45.123456Z", 0, micros(NOON)),
    ]
    dates = [
        ("infinity", 1, None),
        ("5881580-07-11", 1, None),
        ("0044-03-15 BC", -1, None),
        ("-5877611-06-22", -1, None),
        ("9999-12-31", 0, days(LAST.date())),
        ("2024-02-29Z", 0, days(NOON.date())),
    ]
    stamps = [(2**62, "ms", 1, None), (micros(NOON) // 1000, "ms", 0, micros(NOON) // 1000 * 1000)]
    for policy in (None, "refuse", "null", "clip"):
        beyond = {} if policy is None else {"beyond": policy}
        for unit, value, side, exact in in_units:
            yield number({"type": "timestamp", "unit": unit, **beyond}, value, **far("timestamp", policy, side, exact))
        for value, side in ((days(LAST.date()) + 1, 1), (2**31 - 1, 1), (-(2**31), -1), (0, 0)):
            yield number({"type": "date", "unit": "days", **beyond}, value, **far("date", policy, side, value))
            array = pa.array([value], pa.int32()).cast(pa.date32())
            yield Case({"type": "date", **beyond}, None, None, array, **far("date", policy, side, value))
        for written, side, exact in texts:
            yield text({"type": "timestamp", **beyond}, written, **far("timestamp", policy, side, exact))
        for written, side, exact in dates:
            yield text({"type": "date", **beyond}, written, **far("date", policy, side, exact))
        for value, unit, side, exact in stamps:
            array = pa.array([value], pa.timestamp(unit))
            yield Case({"type": "timestamp", **beyond}, None, None, array, **far("timestamp", policy, side, exact))
        for no_time in ("10000-13-01", "-0044-02-30", "infinityx", "20240229"):
            yield text(
                {"type": "date", **beyond}, no_time, refused=f"is declared date and holds '{no_time}'; write ISO 86"
            )


def base64(value: int) -> str:
    return b64encode(unscaled(value)).decode()


def unscaled(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def scaled(column: dict[str, Any], scale: Any, value: int, **more: Any) -> Case:
    """A decimal beside its own scale, as PostgreSQL's numeric and Oracle's NUMBER come."""
    struct = pa.struct([("scale", pa.int32()), ("value", pa.binary())])
    array = pa.array([{"scale": scale, "value": unscaled(value)}], struct)
    return Case(column, json.dumps({"scale": scale, "value": base64(value)}), None, array, **more)


def decimals() -> Iterator[Case]:
    money = {"type": "decimal(12, 2)", "decimals": "precise"}
    label = "is declared decimal(12, 2) (decimals: precise) and holds "
    for value in (0, -1, 1250, 10**12 - 1, -(10**12) + 1):
        array = pa.array([unscaled(value)])
        yield Case(money, f'"{base64(value)}"', base64(value), array, result=Decimal(value).scaleb(-2))
    for scale, value in ((1, 125), (0, -7), (2, 1250), (5, 1_250_000), (-2, 3), (400, 0)):
        yield scaled(money, scale, value, result=Decimal(value).scaleb(-scale).quantize(Decimal("0.01")))
    yield scaled(money, 3, 1, refused="is declared decimal(12, 2)")
    for scale in (-20, 400, 2**31 - 1, -(2**31)):
        yield scaled(money, scale, 1, refused="is declared decimal(12, 2)")
    beyond_64_bits = f'{{"scale": {2**70}, "value": "fQ=="}}'
    yield Case(money, beyond_64_bits, None, None, refused=label)
    yield Case(money, "null", "", pa.array([None], pa.binary()), result=None)
    for wrong in (
        "12.5",
        '{"scale": 1}',
        '{"scale": 1, "value": "fQ==", "value": "AA=="}',
        '{"scale": null, "value": "fQ=="}',
        "true",
        "[1]",
    ):
        yield Case(money, wrong, None, None, refused=label)
    yield Case(money, '{"scale": "1", "value": "fQ=="}', None, None, refused=label)
    yield Case(money, '{"scale": 1, "value": "!"}', None, None, refused=label)
    yield text(
        money, "12.50", refused="is declared decimal(12, 2) (decimals: precise) and holds '12.50', which is no base64"
    )
    for said in ("string", "double"):
        column = {"type": "decimal(12, 2)", "decimals": said}
        yield Case(column, "12.5", "12.5", pa.array([12.5]), result=Decimal("12.50"))
        yield text(column, "12.50", parquet=True, result=Decimal("12.50"))
        yield text(
            column, "NaN", parquet=True, refused="is declared decimal(12, 2) and holds 'NaN', which is no decimal"
        )
    advice = "; if that is {scale, value}, write decimals: precise at the column"
    yield scaled({"type": "decimal(12, 2)", "decimals": "string"}, 1, 125, refused=advice)
    wide = {"type": "decimal(20, 0)", "decimals": "string"}
    yield Case(wide, str(2**64 - 1), str(2**64 - 1), pa.array([2**64 - 1], pa.uint64()), result=Decimal(2**64 - 1))
    yield scaled({**wide, "decimals": "precise"}, 0, 2**64 - 1, result=Decimal(2**64 - 1))


def others() -> Iterator[Case]:
    whole, real, doc = {"type": "int"}, {"type": "float"}, {"type": "json"}
    yield number(whole, -(2**63), result=-(2**63))
    for beyond in (2**63, 2**64 - 1):
        array = pa.array([beyond], pa.uint64())
        yield Case(whole, str(beyond), str(beyond), array, refused="is declared int and holds ")
    for rounded in ("9007199254740993.0", "1e3", "9.3e18"):
        yield Case(whole, rounded, rounded, None, refused="is declared int and holds ")
    yield Case(real, None, None, pa.array([2**53 + 1]), refused="is declared float and holds the integer")
    for special in ("NaN", "Infinity", "-Infinity"):
        array = pa.array([float(special)])
        yield Case(real, f'"{special}"', special, array, result=float(special))
        yield Case(real, special, None, None, result=float(special))
    for wrong in ("nan", "inf", "1.5", ""):
        yield Case(real, f'"{wrong}"', None, None, refused=f"is declared float and holds '{wrong}'")
    yield Case({"type": "bool"}, "true", "true", pa.array([True]), result=True)  # BIT(1)
    yield Case({"type": "bytes"}, '"BQ=="', "BQ==", pa.array([b"\5"]), result=b"\5")  # Bits
    for said in ("pending", "a,b", "6f5a2a5e-0b5e-4d4e-8a3c-0d9f5f1c2b3a"):  # Enum, EnumSet, Uuid
        yield text({"type": "string"}, said, parquet=True, result=said)
    nested = pa.array([[1, None]], pa.list_(pa.int32()))
    yield Case(doc, "[1, null]", "[1, null]", nested, result="[1,null]")
    hstore = pa.array([[("b", None), ("a", "1")]], pa.map_(pa.string(), pa.string()))
    yield Case(doc, '{"b": null, "a": "1"}', '{"b": null, "a": "1"}', hstore, result='{"a":"1","b":null}')
    point = pa.array([{"x": 0.5, "srid": 4326}])
    yield Case(doc, '{"x": 0.5, "srid": 4326}', None, point, result='{"srid":4326,"x":0.5}')
    yield Case(doc, str(2**64 + 1), str(2**64 + 1), None, result=str(2**64 + 1))


CASES = [*counted(), *far_times(), *decimals(), *others()]


def declared(folder: Path, envelope: str, form: str, columns: Sequence[dict[str, Any]]) -> Collection:
    """A collection with the columns c0, c1, …, declared in a file as people do."""
    names = {f"c{at}": column for at, column in enumerate(columns)}
    source = {"path": "{{ landing }}/*", "format": form, "envelope": envelope}
    body: dict[str, Any] = {"name": "things", "key": ["k"], "value": [*names], "start": "2024-01-01", "source": source}
    if envelope != "snapshot":
        body["time"] = "arrival"
    body["columns"] = {"k": "int", **names}
    if envelope == "debezium":
        body |= {"event_time": {"column": "source.ts_ms"}, "source": {**source, "order_by": []}}
    path = folder / "things.yaml"
    path.write_text(json.dumps(body))
    return load(path)


def table(folder: Path, envelope: str, form: str, cases: Sequence[Case]) -> pa.Table:
    """The decoded rows of a file that has one row, of a value of each case."""
    collection = declared(folder, envelope, form, [case.column for case in cases])
    path = folder / "file"
    cells = {f"c{at}": case.written(form) for at, case in enumerate(cases)}
    match form:
        case "csv":
            lines = io.StringIO()
            csv.writer(lines).writerows([["k", "diff", *cells], [1, 1, *cells.values()]])
            path.write_text(lines.getvalue(), newline="")
        case "jsonl":
            fields = ", ".join(f'"{name}": {value}' for name, value in {"k": 1, "diff": 1, **cells}.items())
            row = f"{{{fields}}}"
            message = f'{{"op": "c", "before": null, "after": {row}, "source": {{"ts_ms": 5}}}}'
            path.write_text((message if envelope == "debezium" else row) + "\n")
        case _:
            arrays = {"k": pa.array([1]), "diff": pa.array([1]), **cells}
            if envelope == "debezium":
                image = pa.StructArray.from_arrays(list(arrays.values()), list(arrays))
                arrays = {"op": pa.array(["c"]), "after": image, "source": pa.array([{"ts_ms": 5}])}
            pq.write_table(pa.table(arrays), path)
    return decoded(path, collection)


def plain(array: pa.ChunkedArray) -> Any:
    """A value as the cases have it: times as whole numbers."""
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    return array[0].as_py()


@pytest.mark.parametrize(("envelope", "form"), WAYS)
def test_every_type_is_taken_as_it_is_written(tmp_path: Path, envelope: str, form: str) -> None:
    cases = [case for case in CASES if not case.refused and case.written(form) is not None]
    rows = table(tmp_path, envelope, form, cases)
    assert rows.num_rows == 1
    for at, case in enumerate(cases):
        value = plain(rows.column(f"c{at}"))
        alike = value == case.result or (isinstance(value, float) and math.isnan(value) and math.isnan(case.result))
        assert alike, f"{case} in {form}: {value!r}, not {case.result!r}"
        assert type(value) is type(case.result)


@pytest.mark.parametrize(("envelope", "form"), [way for way in WAYS if way[0] in ("append", "debezium")])
def test_what_does_not_fit_is_refused_by_its_declared_type(tmp_path: Path, envelope: str, form: str) -> None:
    cases = [case for case in CASES if case.refused and case.written(form) is not None]
    assert len(cases) > 25
    for case in cases:
        with pytest.raises(BadFile) as refusal:
            table(tmp_path, envelope, form, [case])
        reason = refusal.value.reason
        assert case.refused in reason.replace("after.", ""), f"{case} in {form}: {reason}"
        assert "column " in reason
        if case.column["type"] in ("timestamp", "date") and "unit" not in case.column and case.json == "5":
            assert reason.endswith("; if it counts since the epoch, write columns: {c0: {unit: ms}}"), reason
        if "beyond" not in case.column and "infinity" in (case.csv or "").lower() and "x" not in (case.csv or ""):
            assert "say what becomes of such times: beyond: null, or clip" in reason, reason

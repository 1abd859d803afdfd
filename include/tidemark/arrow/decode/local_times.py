"""Times by the clock of a place, as instants; and texts that write times by a format.

What a zone's clock shows is asked of Python's `zoneinfo`, once for all times of a day, or of a quarter of an hour on
days on which clocks change. A time by the clock may be twice, or never: what `ambiguous` says is taken then.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode.strict import FAR, ZONED, Misfit, is_text, shown
from tidemark.arrow.rows.arrays import bools_of, of_numbers, of_values, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints, values
from tidemark.arrow.rows.schema import arrow_type
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.epoch import first_and_last
from tidemark.model.time_format import MONTHS, WEEKDAYS, codes_of, regex
from tidemark.model.zone import zone_named

_DAY, _QUARTER, _SECOND = 86_400_000_000, 900_000_000, 1_000_000
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock shows, whose zone is looked up
_US = timedelta(microseconds=1)
_MONDAY = 4
"""The first Monday of 1970, in days."""
_PIVOT = 69
"""Years of two digits from here on are those of the 20th century, as POSIX has it."""


def instants(times: pa.Array, is_instant: Bools, declared: ValueType, zone: str, ambiguous: str | None) -> pa.Array:
    """The instants at which clocks of a zone showed some times.

    Args:
        times: The times as instants of UTC.
        is_instant: Which of them had an offset, and are what they say.
        declared: The column's type, for messages.
        zone: A zone of the tz database.
        ambiguous: Which instant is meant where there are two, or none: `earlier` or `later`; else neither.

    Raises:
        Misfit: A time is twice, or never; or beyond the years 1 to 9999.
    """
    is_local = bools_of(times.is_valid()) & ~is_instant
    local = np.asarray(values(times.cast(pa.int64())), np.int64)
    first, last = first_and_last("us")
    if (far := is_local & ((local < first) | (local > last))).any():
        at = int(far.argmax())
        raise Misfit(f"is declared {declared} and holds a time beyond the years 1 to 9999{FAR}", at)
    before, after = np.zeros(len(local), np.int64), np.zeros(len(local), np.int64)
    before[is_local], after[is_local] = _offsets(local[is_local], zone)
    if ambiguous is None and (doubtful := before != after).any():
        at = int(doubtful.argmax())
        clock = (_EPOCH + int(local[at]) * _US).isoformat()
        what = "is twice" if before[at] > after[at] else "is never"
        advice = f"which {what} in {zone}, as clocks change; to take one write ambiguous: earlier, or later"
        raise Misfit(f"is declared {declared} and holds {clock}, {advice}", at)
    offset = np.minimum(before, after) if ambiguous == "later" else np.maximum(before, after)
    missing = ~bools_of(times.is_valid())
    return of_numbers(local - offset, missing).cast(times.type)


def with_offset(read: pa.Array) -> Bools:
    """Which times of a column have an offset, as a file has them: texts in ISO 8601, numbers or timestamps."""
    if is_text(read.type):
        return _bools(pc.match_substring_regex(read, ZONED))
    return np.full(len(read), pa.types.is_timestamp(read.type) and bool(read.type.tz))


def _offsets(local: Ints, zone: str) -> tuple[Ints, Ints]:
    """How far clocks are ahead of UTC at some times that they show: by the rule before a change, and after it."""
    before, after = np.zeros(len(local), np.int64), np.zeros(len(local), np.int64)
    waiting = np.arange(len(local))
    for length in (_DAY, _QUARTER, 1):
        parts, part_of = np.unique(local[waiting] // length, return_inverse=True)
        read = [_offset(zone, length, int(part)) for part in parts]
        pairs = np.array([pair or (0, 0) for pair in read], np.int64).reshape(-1, 2)[part_of]
        before[waiting], after[waiting] = pairs[:, 0], pairs[:, 1]
        waiting = waiting[np.array([pair is None for pair in read], np.bool_)[part_of]]
    return before, after


@lru_cache(maxsize=16_384)
def _offset(zone: str, length: int, part: int) -> tuple[int, int] | None:
    """What clocks are ahead by in a part of time, before a change and after it; None if it is not the same in all."""
    zone_info = zone_named(zone)

    def at(micros: int) -> tuple[int, int]:
        folds = [(_EPOCH + micros * _US).replace(fold=fold) for fold in (0, 1)]
        first, second = ((zone_info.utcoffset(clock) or timedelta()) // _US for clock in folds)
        return first, second

    ends = at(part * length), at(part * length + length - 1)
    middle = at(part * length + length // 2)
    return middle if ends == (middle, middle) else None


def formatted(texts: pa.Array, declared: ValueType, form: str) -> pa.Array:
    """Texts of a format as dates, or as instants of what they say without an offset as if it was UTC.

    Raises:
        Misfit: A text is not of the format, or no time.
    """
    parts = pc.extract_regex(texts, regex(form))
    is_valid = bools_of(texts.is_valid())
    wrong = is_valid & ~bools_of(parts.is_valid())
    codes = {code: parts.field(code) for code in codes_of(form)}
    numbers = {code: _numbers(code, array) for code, array in codes.items()}
    days, is_day = _days(numbers)
    micros, is_time = _clock(numbers)
    wrong |= is_valid & ~(is_day & is_time)
    if wrong.any():
        at = int(wrong.argmax())
        raise Misfit(f"is declared {written_as(declared, form)} and holds {shown(texts[at].as_py())}", at)
    if declared is ColumnType.DATE:
        return of_numbers(days.astype(np.int32), ~is_valid).cast(arrow_type(declared))
    return of_numbers(days * _DAY + micros, ~is_valid).cast(arrow_type(declared))


def written_as(declared: ValueType, form: str) -> str:
    """A type whose texts have a format, for a message."""
    return f"{declared} (format: {form})"


def _numbers(code: str, array: pa.Array) -> Ints:
    """What a code says, as a number: names from 0 on, an offset in minutes, a fraction in nanoseconds."""
    texts = pc.fill_null(array, _text(""))
    if code in "bBaA":
        names = MONTHS if code in "bB" else WEEKDAYS
        texts = pc.utf8_lower(texts)
        first = of_values([name[:3] for name in names], pa.string())
        return _ints(pc.index_in(pc.utf8_slice_codeunits(texts, 0, 3), value_set=first), missing=-1)
    if code == "p":
        return _ints(pc.equal(pc.utf8_lower(texts), _text("pm")))
    if code == "z":
        digits = pc.replace_substring_regex(pc.replace_substring_regex(texts, "[Zz]", "+0000"), ":", "")
        sign = np.where(_bools(pc.starts_with(digits, "-")), -1, 1)
        hours, minutes = (_ints(_whole(pc.utf8_slice_codeunits(digits, at, at + 2))) for at in (1, 3))
        return np.where((hours < 24) & (minutes < 60), sign * (60 * hours + minutes), _DAY)
    if code == "f":
        texts = pc.utf8_rpad(texts, 9, "0")
    return _ints(_whole(texts))


def _whole(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, _text("")), _text("0"), texts).cast(pa.int64())


def _text(text: str) -> pa.Scalar:
    return scalar_of(text, pa.string())


def _ints(array: pa.Array, missing: int = 0) -> Ints:
    return np.asarray(values(pc.fill_null(array.cast(pa.int64()), scalar_of(missing, pa.int64()))), np.int64)


def _bools(array: pa.Array) -> Bools:
    return bools_of(pc.fill_null(array, scalar_of(False, pa.bool_())))


def _days(said: dict[str, Ints]) -> tuple[Ints, Bools]:
    """The days since 1970 that codes say, and which of them there are."""
    years = said["Y"] if "Y" in said else said["y"] + np.where(said["y"] < _PIVOT, 2000, 1900)
    if "j" in said:
        first = _month(years, np.ones_like(years))
        days, exist = (
            first + said["j"] - 1,
            (said["j"] > 0) & (first + said["j"] <= _month(years + 1, np.ones_like(years))),
        )
    else:
        named = next((said[code] + 1 for code in "bB" if code in said), None)
        months = said["m"] if named is None else named
        is_month = (months > 0) & (months <= 12)
        first = _month(years, np.where(is_month, months, 1))
        days = first + said["d"] - 1
        exist = is_month & (said["d"] > 0) & (days < _month(years, np.where(is_month, months, 1) + 1))
    exist &= years > 0
    for code in "aA":
        if code in said:
            exist &= said[code] == (days - _MONDAY) % 7
    return days, exist


def _month(years: Ints, months: Ints) -> Ints:
    """The first day of some months, in days since 1970."""
    return ((years - 1970) * 12 + months - 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _clock(said: dict[str, Ints]) -> tuple[Any, Any]:
    """The microseconds of the day that codes say, and which of them there are."""
    hours = said.get("H", np.int64(0))
    exist: Any = np.bool_(True)
    if "I" in said:
        hours = said["I"] % 12 + 12 * said["p"]
        exist = (said["I"] > 0) & (said["I"] <= 12)
    minutes, seconds, nanos, ahead = (said.get(code, np.int64(0)) for code in "MSfz")
    exist = exist & (hours < 24) & (minutes < 60) & (seconds < 60) & (nanos % 1000 == 0) & (ahead < 1440)
    return ((hours * 60 + minutes - ahead) * 60 + seconds) * _SECOND + nanos // 1000, exist

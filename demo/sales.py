"""A year of sales of four shops, for docs/how-to/first-collection.md: 500 a day, some late, two of them wrong.

python -m demo.sales           a CSV file for each day of 2024 into TIDEMARK_LANDING
python -m demo.sales mend      20 December: two amounts that were negative are right
python -m demo.sales correct   17 December: Braga's till had written twenty amounts ten times too high
"""

from __future__ import annotations

import csv
import os
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

FIRST, DAYS, SALES = date(2024, 1, 1), 366, 500
STORES = ("Lisbon", "Porto", "Braga", "Faro")
COLUMNS = ("sale", "store", "amount", "customer", "sold_at")
OFFLINE, WRONG = date(2024, 12, 17), date(2024, 12, 20)
"""The day on which sales of two days before came in, and the day whose file has amounts below zero."""
TOO_HIGH = 20

Sale = list[str]


def land(landing: Path, first: date = FIRST, days: int = DAYS) -> int:
    """Write a file for each day below a landing, the same ones each time; how many sales these are."""
    numbers = random.Random(1)
    for at in range(days):
        day = first + timedelta(days=at)
        _write(landing, day, _sales(day, at * SALES, numbers))
    return days * SALES


def mend(landing: Path) -> int:
    """Put the amounts below zero right; how many there were."""
    return _rewritten(landing, WRONG, lambda sale: [f"{abs(float(sale[2])):.2f}"] if sale[2].startswith("-") else [])


def correct(landing: Path) -> int:
    """Divide the first amounts of Braga by ten; how many there were."""
    left = iter(range(TOO_HIGH))

    def tenth(sale: Sale) -> list[str]:
        is_too_high = sale[1] == "Braga" and next(left, None) is not None
        return [f"{float(sale[2]) / 10:.2f}"] if is_too_high else []

    return _rewritten(landing, OFFLINE, tenth)


def _sales(day: date, before: int, numbers: random.Random) -> Iterator[Sale]:
    for number in range(before + 1, before + SALES + 1):
        sold = datetime(day.year, day.month, day.day, 8, tzinfo=UTC) + timedelta(seconds=numbers.randrange(12 * 3600))
        if day == OFFLINE and number % 10 == 0:
            sold -= timedelta(days=2)
        amount = numbers.randrange(100, 20_000) / 100
        if day == WRONG and number % 250 == 0:
            amount = -amount
        customer = f"customer{number % 900}@example.com"
        yield [str(number), STORES[number % 4], f"{amount:.2f}", customer, f"{sold:%Y-%m-%dT%H:%M:%SZ}"]


def _rewritten(landing: Path, day: date, amount: Callable[[Sale], list[str]]) -> int:
    """Write a day's file with other amounts, where `amount` gives one; how many these are."""
    with _file(landing, day).open(newline="") as file:
        _, *sales = csv.reader(file)
    found = [amount(sale) for sale in sales]
    _write(landing, day, (sale[:2] + (new or sale[2:3]) + sale[3:] for sale, new in zip(sales, found, strict=True)))
    return sum(map(bool, found))


def _write(landing: Path, day: date, sales: Iterator[Sale]) -> None:
    """The file of a day, whole or not at all."""
    file = _file(landing, day)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and not file.read_bytes().startswith(",".join(COLUMNS).encode()):
        raise SystemExit(f"{file} is there, and is no file of sales; set TIDEMARK_LANDING to another folder")
    partial = file.with_suffix(".partial")
    with partial.open("w", newline="") as out:
        csv.writer(out).writerows([COLUMNS, *sales])
    partial.replace(file)


def _file(landing: Path, day: date) -> Path:
    return landing / "sales" / day.isoformat() / "sales.csv"


def main(words: list[str]) -> str:
    """What `python -m demo.sales WORDS` says once it is done."""
    ways: dict[str, Callable[[Path], int]] = {"land": land, "mend": mend, "correct": correct}
    way = words[0] if words else "land"
    if len(words) > 1 or way not in ways or "TIDEMARK_LANDING" not in os.environ:
        raise SystemExit("say: tools/run python -m demo.sales [land|mend|correct]")
    landing = Path(os.environ["TIDEMARK_LANDING"])
    return f"{way}: {ways[way](landing):,} sales in {landing / 'sales'}"


if __name__ == "__main__":
    print(main(sys.argv[1:]))

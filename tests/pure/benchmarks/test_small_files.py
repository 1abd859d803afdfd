"""A day of many small files: what each of them costs, what is said of one that is bad, and how far a run is."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest import mock

from benchmarks.feed import DAY, START
from benchmarks.small_files import ROWS, collection, land
from benchmarks.steps import Bench, InProcess
from tidemark.arrow.decode import content
from tidemark.arrow.rows import progress
from tidemark.jobs.in_process_runner import BySize
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.collection import Format
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, SourceFile, Status
from tidemark.plan.tasks import IngestAnswer
from tidemark.storage import landing as landed
from tidemark.storage.documents.codec import decode, encode

FILES = 2_000
ENTRY_BYTES = 600
"""Memory of an entry of the ledger: whoever commits has one for each file."""
DAYS = [Interval(START + day * DAY, START + (day + 1) * DAY) for day in range(2)]


class TestManyFiles:
    def test_each_is_opened_once_a_bad_one_is_named_and_the_next_day_opens_none_of_them(self, tmp_path: Path):
        land(tmp_path / "landing", Format.CSV, 0, FILES)
        land(tmp_path / "landing", Format.CSV, 1, 1)
        bad = next((tmp_path / "landing").glob("*/0000777.csv"))
        bad.write_text("id,amount,at\n1,one,2013-01-01T00:00:00Z\n")
        declared, notes = collection(Format.CSV), list[str]()
        origin = replace(declared.landed, source=replace(declared.landed.source, bad_files="quarantine"))
        declared = replace(declared, origin=origin)
        bench = Bench(declared, tmp_path / "root", tmp_path / "landing", note=notes.append)
        bench.runner_for = lambda store: BySize(store, lambda: InProcess(store), 1, notes.append)
        traffic = bench.counted()
        with (
            mock.patch.object(content, "open_source", side_effect=landed.open_source) as opened,
            mock.patch.object(progress, "SOON_S", 0),
            mock.patch.object(progress, "PACE_S", 3_600),
        ):
            first = ingest(bench.job, DAYS[0], landing_root=str(bench.landing))
            calls = traffic.calls.total()
            second = ingest(bench.job, DAYS[1], landing_root=str(bench.landing))
        assert (first["files"], first["rows"], first["bad_files"]) == (FILES, (FILES - 1) * ROWS, 1)
        assert (second["files"], opened.call_count) == (1, FILES + 1)
        assert [line for line in notes if "0000777.csv: line 2: column amount" in line]
        assert calls < 40, f"{calls} calls of the store"
        assert traffic.calls.total() - calls < 20
        assert len([note for note in notes if note.startswith(f"file 1 of {FILES:,}, {ROWS} rows, ")]) == 1

    def test_lines_of_progress_come_after_two_seconds_then_every_ten(self):
        lines, clock = list[str](), count()
        with progress.reporting(progress.Progress(FILES, lines.append, now=lambda: next(clock) * 0.01)):
            for _ in range(FILES):
                progress.count_file(ROWS)
        assert lines == [
            "file 200 of 2,000, 2,000 rows, 100 files/s, about 18 s to go",
            "file 1,200 of 2,000, 12,000 rows, 100 files/s, about 8 s to go",
        ]

    def test_whoever_commits_has_few_bytes_for_each(self):
        entries = tuple(
            LedgerEntry(f"2013-01-01/{at:07d}.csv", at, f"{at:064d}", f"{at:027d}", DAYS[0], Status.INGESTED, "b" * 32)
            for at in range(FILES)
        )
        encoded = encode(IngestAnswer((), entries, None), IngestAnswer)
        decode(encoded, IngestAnswer, name="answer")
        tracemalloc.start()
        answer = decode(encoded, IngestAnswer, name="answer")
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(answer.entries) == FILES
        assert used / FILES < ENTRY_BYTES


class TestFetchedTogether:
    def test_small_files_across_a_network_are_fetched_at_once_within_bounds_and_in_order(self):
        sizes = [10] * 600 + [9 * 2**20] * 2 + [10] * 3
        files = [SourceFile(f"s3://bucket/{at:04d}", size, "t", name=str(at)) for at, size in enumerate(sizes)]
        groups: list[int] = []

        def read_many(read, items, *, few):
            groups.append(len(items) if few == 1 else -1)
            return map(read, items)

        def fetch(file, form):
            if file.name == "3":
                raise content.BadFile(file.path, "is bad")
            return file

        with mock.patch.object(content, "read_many", read_many), mock.patch.object(content, "fetch", fetch):
            answers = list(content.fetched(files, Format.CSV))
        assert groups == [512, 89, 4]
        assert [at for at, answer in enumerate(answers) if answer is not files[at]] == [3]
        assert str(answers[3]) == "s3://bucket/0003: is bad"

"""A file that cannot be read now is no bad file, and memory that runs out is no verdict: both are tried again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pure.ingest.landed import collection, listed, task, write
from tests.support.child import run_python
from tests.support.measured import Measure
from tidemark.arrow.decode import content, parquetfile
from tidemark.arrow.decode.source import decode, fetch
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.errors import RETRY_SAFE, InvalidUsage, NotReady, Unavailable
from tidemark.model.collection import Column, ColumnType, Format
from tidemark.model.ledger import SourceFile, Status
from tidemark.storage.landing import as_text, is_ready, is_text, list_sources, sha256_of, token_of
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
NOBODY = 65534


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """What is below the folder cannot be looked at, also by root."""
    before = folder.stat().st_mode
    folder.chmod(0)
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)
        folder.chmod(before)


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    # Whoever has no permission for the landing still finds the way to it.
    session = Path(tempfile.gettempdir())
    for folder in (tmp_path, *(above for above in tmp_path.parents if above.is_relative_to(session))):
        folder.chmod(0o755)
    folder = tmp_path / "landing" / "day"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("k,t\n1,2\n")
    return folder


def test_a_file_without_permission_is_tried_again(landed: Path) -> None:
    file = listed(landed / "a.csv")
    with locked(landed), pytest.raises(Unavailable, match=r"a\.csv cannot be read: Permission denied") as caught:
        ingest_files(MemoryStore(), task(collection(file_format=Format.CSV), [file]))
    assert caught.value.exit_code == RETRY_SAFE
    (entry,) = ingest_files(MemoryStore(), task(collection(file_format=Format.CSV), [file])).entries
    assert entry.status is Status.INGESTED


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that answers EIO")
def test_a_file_whose_disk_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "IN_MEMORY_BYTES", -1)
    file = SourceFile("/proc/self/mem", 0, token_of("/proc/self/mem") or "")
    with pytest.raises(Unavailable, match="Input/output error"):
        fetch(file)
    with pytest.raises(Unavailable, match="Input/output error"):
        sha256_of(file.path)


@pytest.mark.parametrize("file_format", list(Format))
def test_a_large_file_that_fails_while_it_is_decoded_is_tried_again(
    landed: Path, monkeypatch: pytest.MonkeyPatch, file_format: Format
) -> None:
    declared = collection(file_format=file_format)
    monkeypatch.setattr(content, "IN_MEMORY_BYTES", 0)
    file = write(landed / "big", [{"k": 1, "t": 2}], declared)
    whole = fetch(file)
    with locked(landed), pytest.raises(Unavailable, match="Permission denied"):
        list(decode(whole, declared))
    (landed / "big").unlink()
    with pytest.raises(NotReady, match="gone"):
        list(decode(whole, declared))


@pytest.mark.parametrize("ready", ["always", "exists", "_SUCCESS"])
def test_a_landing_that_cannot_be_looked_at_is_not_taken_for_empty(landed: Path, ready: str) -> None:
    root = landed.parent
    pattern = f"{root}/day/*.csv"
    with locked(root):
        with pytest.raises(Unavailable, match="Permission denied"):
            list_sources(pattern, within=str(root))
        if ready != "always":
            with pytest.raises(Unavailable, match="Permission denied"):
                is_ready(pattern, ready)
    with locked(root.parent), pytest.raises(Unavailable, match="Permission denied"):
        is_ready(pattern, ready, within=str(root))
    with locked(root), pytest.raises(Unavailable, match="Permission denied"):
        token_of(str(landed / "a.csv"))


def test_a_link_that_leads_nowhere_is_refused_still(landed: Path) -> None:
    (landed / "b.csv").symlink_to(landed / "b.csv")
    with pytest.raises(InvalidUsage, match="broken link"):
        list_sources(f"{landed}/*.csv")


def test_a_name_that_is_not_utf8_is_listed_and_shown(landed: Path) -> None:
    name = os.fsencode(landed) + b"/\xff.csv"
    Path(os.fsdecode(name)).write_text("k,t\n1,2\n")
    _, file = list_sources(f"{landed}/*.csv")
    assert not is_text(file.path)
    assert as_text(file.path) == f"{landed}/\\xff.csv"
    assert sha256_of(file.path) == sha256_of(str(landed / "a.csv"))


TIGHT = """
import resource, sys
from pathlib import Path
from tests.pure.ingest.landed import collection, listed, task
from tidemark.arrow.kernels.registry import run_encoded
from tidemark.errors import Unavailable
from tidemark.model.collection import Column, ColumnType, Format
from tidemark.storage.documents.codec import encode
from tidemark.storage.stores.memory import MemoryStore

V = Column("v", ColumnType.STRING)
for spare in [None, 1, None]:
    for path in map(Path, sys.argv[1:]):
        work = encode(task(collection(V, file_format=Format(path.name)), [listed(path)]))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = resource.RLIM_INFINITY if spare is None else used + spare * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            answer = run_encoded(MemoryStore(), "ingest", work)
            outcome = "ingested" if b'"status":"ingested"' in answer else answer[:500]
        except Unavailable:
            outcome = "unavailable"
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(outcome)
"""


@pytest.mark.measured
def test_memory_that_runs_out_is_no_verdict_on_a_good_file(tmp_path: Path) -> None:
    declared = collection(Column("v", ColumnType.STRING))
    rows = [{"k": k, "v": f"{k}" * 200, "t": 1} for k in range(5_000)]
    outcomes = run_python(TIGHT, write(tmp_path / "parquet", rows, declared).path).split()
    assert outcomes == ["ingested", "unavailable", "ingested"]


@pytest.mark.parametrize("said", ["Couldn't deserialize thrift: std::bad_alloc\n", "ZSTD: not enough memory"])
def test_memory_that_runs_out_inside_a_library_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    declared = collection(Column("v", ColumnType.STRING))
    file = write(tmp_path / "parquet", [{"k": 1, "v": "x", "t": 1}], declared)

    def failing(*_: object, **__: object) -> None:
        raise OSError(said)

    monkeypatch.setattr(parquetfile, "_parquet", failing)
    with pytest.raises(Unavailable, match="memory ran out") as caught:
        list(decode(fetch(file), declared))
    assert caught.value.exit_code == RETRY_SAFE


WIDE = """
import re, sys
from pathlib import Path
from tests.pure.ingest.landed import collection, listed
from tidemark.arrow.decode.source import decode, fetch
from tidemark.model.collection import Column, ColumnType

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

declared = collection(Column("v", ColumnType.STRING))
small, *files = (listed(Path(path)) for path in sys.argv[1:])
assert sum(block.num_rows for block in decode(fetch(small), declared)) == 1
before = peak()
for file in files:
    rows = [(block.num_rows, block.nbytes) for block in decode(fetch(file), declared)]
    print(Path(file.path).name, sum(n for n, _ in rows), max(size for _, size in rows) // 2**20, peak() - before)
"""


@pytest.mark.measured
def test_a_value_that_thousands_of_rows_share_takes_bounded_memory(tmp_path: Path, measure: Measure) -> None:
    """A megabyte in a dictionary, in a struct's, as a shared beginning, and in row groups of its own: small on disk, a
    gigabyte as rows."""
    count, text = 1_000, "x" * 10**6
    once = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))
    numbers = {"k": list(range(count)), "t": [1] * count}
    pq.write_table(pa.table({"k": [1], "v": ["x"], "t": [1]}), tmp_path / "small")
    pq.write_table(pa.table({**numbers, "v": once}), tmp_path / "dictionary", store_schema=False)
    pq.write_table(pa.table({**numbers, "v": once}), tmp_path / "declared-dictionary", row_group_size=400)
    shared = pa.table({**{name: values[:300] for name, values in numbers.items()}, "v": [text] * 300})
    encoded = {"use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}}
    pq.write_table(shared, tmp_path / "prefix", **encoded)
    separate = pa.table({**{name: values[:600] for name, values in numbers.items()}, "v": [text] * 600})
    pq.write_table(separate, tmp_path / "groups-of-one-row", row_group_size=1)
    files = [tmp_path / name for name in ("small", "dictionary", "declared-dictionary", "prefix", "groups-of-one-row")]
    lines = [line.split() for line in run_python(WIDE, *map(str, files)).splitlines()]
    assert [(name, int(rows)) for name, rows, _, _ in lines] == [
        ("dictionary", count),
        ("declared-dictionary", count),
        ("prefix", 300),
        ("groups-of-one-row", 600),
    ]
    for name, _, block, used in lines:
        assert int(block) <= 32, f"{name}: a block of {block} MiB"
        measure.below(f"{name}, of {count} MiB of rows", int(used), 400, "MiB")

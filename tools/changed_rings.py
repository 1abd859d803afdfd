"""Which rings of tests a change can touch, by the folders that it is in. Nothing here reads a file or runs a command.

>>> chosen(["include/tidemark/airflow/links.py", "docs/concepts.md"], ["dags", "pure", "simulation"])
{'dags': ['docs/concepts.md', 'include/tidemark/airflow/links.py'], 'pure': ['docs/concepts.md']}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

AIRFLOW = ("dags", "e2e", "deep", "launch", "s3")
PAGES = ("pure", "cli", "dags")
ALWAYS = ("environment",)
"""It looks at every file that is under version control."""

TOUCHED: dict[str, Sequence[str]] = {
    # What is not listed touches every ring: model, plan, storage and all else that every step is made of, and whatever
    # is new. The longest prefix counts.
    "include/tidemark/airflow/": AIRFLOW,
    "include/tidemark/airflow/web/": (*AIRFLOW, "simulation", "quality"),
    "include/tidemark/api/": ("pure", "simulation", "conformance", "cli", "spark", "s3", "dags", "e2e", "deep"),
    "include/pyspark_tidemark.py": ("pure", "simulation", "spark"),
    "include/tidemark/datasource/": ("pure", "cli", "spark", "deep"),
    "include/tidemark/cli/": ("cli", "pure", "simulation", "spark", "e2e", "deep"),
    "include/tidemark/publish/": ("pure", "simulation", "cli", *AIRFLOW),
    "include/tidemark/quality/": (
        *("quality", "pure", "simulation", "spark", "cli", "compat", "conformance"),
        *AIRFLOW,
    ),
    "include/tidemark/resident/": ("pure", "spark", "quality", *AIRFLOW),
    "include/tidemark/spark/": ("spark", "quality", "pure", "cli", "conformance", *AIRFLOW),
    "include/collections/": ("pure", "cli", "demo", *AIRFLOW),
    "spark_apps/": ("spark", "pure", *AIRFLOW),
    "dags/": ("dags", "e2e", "deep"),
    "plugins/": ("dags", "e2e", "deep"),
    "demo/": ("demo", "cli", "e2e", "deep"),
    "benchmarks/": ("pure", "simulation", "quality", "s3"),
    "docs/": PAGES,
    "docs/notebooks/": (*PAGES, "demo"),
    "README.md": PAGES,
    "CONTRIBUTING.md": PAGES,
    "CHANGELOG.md": PAGES,
    "Makefile": PAGES,
    ".ci/": (),
    ".github/": (),
    "Dockerfile": (),
    "docker-compose.yaml": (),
    "tools/": ("spark", *AIRFLOW),
    "tools/changed_rings.py": (),
    "tools/all_cpu.py": (),
    "tools/deep_parts.py": (),
    "tools/run_tests.py": (),
    "tools/slowest_tests.py": (),
    "tools/style_counts.json": (),
    "tools/style_ratchet.py": (),
    "tools/reference.py": (),
    "tools/spark_apps.py": ("pure",),
    # Rings of tests, with those that import from them.
    "tests/cli/": ("cli", "s3"),
    "tests/compat/": ("compat", "simulation"),
    "tests/compat/windows/": ("spark",),
    "tests/conformance/": ("conformance", "pure"),
    "tests/conformance/runner.py": ("conformance", "pure", "spark"),
    "tests/conformance/window_emitted.py": ("conformance", "pure", "spark"),
    "tests/conformance/window_script.py": ("conformance", "pure", "spark"),
    "tests/dags/": ("dags", "s3"),
    "tests/deep/": ("deep",),
    "tests/deep/parts.toml": (),
    "tests/deep/passed/": (),
    "tests/demo/": ("demo",),
    "tests/e2e/": ("e2e", "deep"),
    "tests/environment/": (),
    "tests/launch/": ("launch", "e2e", "deep"),
    "tests/launch/support.py": ("launch", "e2e", "deep", "s3"),
    "tests/oracles/": ("conformance", "pure", "spark"),
    "tests/oracles/database/": ("simulation",),
    "tests/pure/definition/test_dated.py": ("pure", "spark"),
    "tests/pure/test_how_to_read.py": ("pure", "spark"),
    "tests/pure/storage/test_log.py": ("pure", "s3"),
    "tests/quality/": ("quality",),
    "tests/s3/": ("s3",),
    "tests/simulation/": ("simulation", "s3", "quality", "compat"),
    "tests/simulation/sea.py": ("simulation", "s3", "quality", "compat", "spark"),
    "tests/spark/": ("spark", "launch"),
    "tests/spark/support.py": ("pure", "spark", "launch", "deep"),
}


def touched(path: str) -> Sequence[str] | None:
    """The rings that a change of a file can touch; None for all of them."""
    prefixes = [prefix for prefix in TOUCHED if path == prefix or (prefix.endswith("/") and path.startswith(prefix))]
    if prefixes:
        return TOUCHED[max(prefixes, key=len)]
    # The files beside the tests of `pure` are of use to other rings.
    return ("pure",) if path.startswith("tests/pure/") and path.rpartition("/")[2].startswith("test_") else None


def chosen(paths: Iterable[str], rings: Sequence[str]) -> dict[str, list[str]]:
    """Of these rings those that a change of some files can touch, in order, each with the files that touch it."""
    found: dict[str, list[str]] = {ring: [] for ring in rings}
    for path in sorted(set(paths)):
        by_path = touched(path)
        for ring in rings if by_path is None else (*by_path, *ALWAYS):
            if ring in found:
                found[ring].append(path)
    return {ring: why for ring, why in found.items() if why}

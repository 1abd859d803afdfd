"""Where a run's param `landing` may point: within what the deployment says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.airflow.landing import landing_of_run
from tidemark.errors import InvalidUsage


@pytest.fixture
def landing(locations: Path) -> Path:
    folder = locations / "landing"
    (folder / "mended").mkdir(parents=True)
    (folder / "out").symlink_to("/")
    (locations / "landing-other").mkdir()
    (locations / "link").symlink_to(folder)
    return folder


def test_without_one_it_is_the_collections_own_or_the_deployments(landing: Path) -> None:
    assert landing_of_run(None) == landing_of_run("") == str(landing)
    assert landing_of_run(None, "s3://bucket/in") == "s3://bucket/in"


def test_a_path_within_is_taken(landing: Path, locations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert landing_of_run(str(landing)) == str(landing)
    assert landing_of_run(f"{landing}/mended/") == f"{landing}/mended"
    assert landing_of_run(f"{landing}/mended/../mended") == f"{landing}/mended"
    assert landing_of_run(f"{locations}/link/mended") == f"{locations}/link/mended"
    assert landing_of_run("s3://bucket/in/mended", "s3://bucket/in/") == "s3://bucket/in/mended"
    monkeypatch.chdir(landing)
    assert landing_of_run("mended") == f"{landing}/mended"
    monkeypatch.setenv("TIDEMARK_LANDING", str(locations / "link"))
    assert landing_of_run(f"{landing}/mended") == f"{landing}/mended"


@pytest.mark.parametrize(
    "asked",
    [
        "/etc",
        "/",
        "{landing}/..",
        "{landing}/../landing-other",
        "{landing}-other",
        "{landing}/out",
        "{landing}/out/etc",
        "{landing}/mended/../../landing-other",
        "../../../../../../etc",
        "~",
        "~root",
        "file://{landing}",
        "file:///etc",
        "FILE:///etc",
        "s3://bucket/other",
        "s3://bucket/incoming",
        "s3://bucket",
        "s3://bucket/in/../other",
        "s3://bucket/in/./x",
        "s3://BUCKET/in",
        "S3://bucket/in",
        "s3a://bucket/in",
        "{landing}\0",
        5,
        ["/etc"],
    ],
)
def test_a_path_elsewhere_is_refused(
    landing: Path, locations: Path, monkeypatch: pytest.MonkeyPatch, asked: object
) -> None:
    monkeypatch.setenv("TIDEMARK_LANDINGS", "s3://bucket/in")
    given = asked.replace("{landing}", str(landing)) if isinstance(asked, str) else asked
    with pytest.raises(InvalidUsage, match="param landing is "):
        landing_of_run(given)


def test_a_deployment_may_allow_more(landing: Path, locations: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidUsage, match=r"not within .*/landing; move the files there, or .* TIDEMARK_LANDINGS"):
        landing_of_run(f"{locations}/landing-other")
    monkeypatch.setenv("TIDEMARK_LANDINGS", f" {locations}/landing-other , s3://bucket/in ,")
    assert landing_of_run(f"{locations}/landing-other") == f"{locations}/landing-other"
    assert landing_of_run("s3://bucket/in/2024") == "s3://bucket/in/2024"
    monkeypatch.setenv("TIDEMARK_LANDINGS", "/")
    assert landing_of_run("/etc") == "/etc"

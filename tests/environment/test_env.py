"""tools/env.sh: what a user has set stays, and what Airflow's UI may decide is not decided there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.pure

PROJECT = Path(__file__).resolve().parents[2]


def environment(**given: str) -> dict[str, str]:
    """The environment after sourcing it, started with `given` and nothing else of ours."""
    ours = ("TIDEMARK_", "AIRFLOW_", "PORT", "PYTHONPATH", "MPLCONFIGDIR", "BASH_FUNC")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = ["bash", "-c", f". '{PROJECT}/tools/env.sh' && env -0"]
    done = subprocess.run(command, env=outside | given, capture_output=True, text=True, check=True)
    return dict(pair.partition("=")[::2] for pair in done.stdout.split("\0") if pair)


def test_no_connection_is_set_that_would_go_before_one_of_the_ui() -> None:
    made = environment()
    assert not [name for name in made if name.startswith("AIRFLOW_CONN_")]
    assert made["TIDEMARK_SPARK_MASTER"] == "local[2]"


def test_what_a_user_has_set_stays() -> None:
    given = {
        "AIRFLOW_CONN_SPARK_DEFAULT": "spark://cluster:7077",
        "TIDEMARK_SPARK_MASTER": "local[8]",
        "TIDEMARK_ROOT": "s3://bucket/collections",
        "TIDEMARK_LANDING": "/in",
    }
    made = environment(**given)
    assert {name: made[name] for name in given} == given


IDLE = "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME"


def test_the_scheduler_looks_for_work_four_times_a_second_unless_a_user_says_otherwise() -> None:
    assert environment()[IDLE] == "0.25"
    assert environment(**{IDLE: "2"})[IDLE] == "2"


def test_every_setting_of_the_scheduler_is_one_that_this_airflow_knows() -> None:
    spec = importlib.util.find_spec("airflow")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    settings = Path(spec.submodule_search_locations[0]) / "config_templates" / "config.yml"
    known = yaml.safe_load(settings.read_text())["scheduler"]["options"]
    named = [name for name in environment() if name.startswith("AIRFLOW__SCHEDULER__")]
    assert IDLE in named
    assert {name.removeprefix("AIRFLOW__SCHEDULER__").lower() for name in named} <= set(known)


def test_the_fonts_that_pictures_are_made_with_are_listed_within_the_folder() -> None:
    assert environment()["MPLCONFIGDIR"] == f"{PROJECT}/build/matplotlib"
    assert environment(MPLCONFIGDIR="/mine")["MPLCONFIGDIR"] == "/mine"

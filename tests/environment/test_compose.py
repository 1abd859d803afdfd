"""docker-compose.yaml and the Dockerfile, judged without Docker: what usually breaks in such files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / "docker-compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
AIRFLOW = [
    "airflow-init",
    "airflow-apiserver",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
]
SPARK = ["spark-master", "spark-worker"]
DOCKERFILE = (PROJECT / "Dockerfile").read_text()


def test_the_image_holds_byte_code_of_all_that_runs() -> None:
    [compiled] = re.findall(r"^RUN python /opt/airflow/tools/byte_code.py((?:.*\\\n)*.*)", DOCKERFILE, re.MULTILINE)
    folders = re.findall(r"^COPY --chown=airflow:0 (\w+) ", DOCKERFILE, re.MULTILINE)
    assert set(folders) == {"include", "dags", "plugins", "spark_apps"}
    assert all(f"/opt/airflow/{folder}" in compiled for folder in folders)
    assert "pandas.__file__" in compiled  # the folder of the packages
    assert DOCKERFILE.index("byte_code.py \\") > max(DOCKERFILE.index(f" {folder} /opt") for folder in folders)


def test_airflow_and_spark_run_from_one_image_that_is_built_here() -> None:
    # Another Python or pyspark in the executors is the usual failure of such set-ups.
    assert {SERVICES[name]["image"] for name in AIRFLOW + SPARK} == {"tidemark:local"}
    assert [name for name, service in SERVICES.items() if "build" in service] == ["volumes-init"]
    waiting = {name for name in [*AIRFLOW, "spark-worker"] if "volumes-init" in _before(name)}
    assert waiting == {*AIRFLOW, "spark-worker"}
    assert {SERVICES[name]["pull_policy"] for name in AIRFLOW + SPARK} == {"never"}, "a registry may have the name"


def _before(name: str) -> set[str]:
    directly = set(SERVICES[name].get("depends_on", {}))
    return directly.union(*map(_before, directly))


@pytest.mark.parametrize("name", [*AIRFLOW, "spark-worker"])
def test_the_package_can_be_imported(name: str) -> None:
    assert SERVICES[name]["environment"]["PYTHONPATH"] == "/opt/airflow/include"
    assert "COPY --chown=airflow:0 include /opt/airflow/include" in DOCKERFILE


@pytest.mark.parametrize("name", AIRFLOW)
def test_tasks_reach_the_api_server_with_the_shared_secret(name: str) -> None:
    environment = SERVICES[name]["environment"]
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://airflow-apiserver:8080/execution/"
    assert environment["AIRFLOW__API_AUTH__JWT_SECRET"].startswith("${AIRFLOW_JWT_SECRET:?")
    assert environment["AIRFLOW__CORE__FERNET_KEY"].startswith("${AIRFLOW_FERNET_KEY:?")


def test_the_scheduler_looks_for_work_four_times_a_second() -> None:
    assert SERVICES["airflow-scheduler"]["environment"]["AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME"] == "0.25"


def test_spark_connection_names_the_master_that_runs() -> None:
    connection = json.loads(SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    master = SERVICES["spark-master"]
    assert connection["host"] == f"spark://{master['hostname']}"
    assert str(connection["port"]) == master["command"][master["command"].index("--port") + 1]
    assert f"{connection['host']}:{connection['port']}" in SERVICES["spark-worker"]["command"]
    # Standalone Spark refuses cluster mode for Python, so executors must reach the driver in the scheduler.
    assert connection["extra"]["deploy-mode"] == "client"
    assert SERVICES["airflow-scheduler"]["hostname"] == "airflow-scheduler"


def test_the_drivers_of_all_tasks_at_once_leave_the_scheduler_room() -> None:
    """Measured: a driver's Python takes 360 MB in a gate and its JVM some 200 beside its heap; a task's takes 100."""
    scheduler = SERVICES["airflow-scheduler"]
    heap = int(re.fullmatch(r"(\d+)m", scheduler["environment"]["SPARK_DRIVER_MEMORY"])[1])  # type: ignore[index]
    limit = int(re.fullmatch(r"\$\{SCHEDULER_MEMORY:-(\d+)g\}", scheduler["mem_limit"])[1])  # type: ignore[index]
    at_once = int(scheduler["environment"]["AIRFLOW__CORE__PARALLELISM"])
    assert at_once * (heap + 200 + 360 + 100) <= (limit - 1) * 1024


def test_driver_and_executors_see_the_same_landing_and_the_same_store() -> None:
    driver, executor = SERVICES["airflow-scheduler"], SERVICES["spark-worker"]
    assert "landing:/opt/airflow/landing" in driver["volumes"]
    assert "landing:/opt/airflow/landing" in executor["volumes"]
    s3 = {key for key in driver["environment"] if key.startswith("AWS_")}
    assert {"AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= s3
    assert {k: driver["environment"][k] for k in s3} == {k: executor["environment"][k] for k in s3}


def test_image_has_java_and_the_pinned_packages() -> None:
    assert re.search(r"apt-get install .*default-jre-headless", DOCKERFILE)
    assert "JAVA_HOME=/opt/java" in DOCKERFILE
    assert "pip install --no-cache-dir --require-hashes --requirement /opt/airflow/requirements.txt" in DOCKERFILE
    pinned = re.search(r"^apache-airflow==(\S+)", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert f"FROM apache/airflow:slim-{pinned[1]}-python3.11\n" in DOCKERFILE
    # The slim image has no driver for its database either.
    assert re.search(r"^psycopg2-binary==", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    copied = re.findall(r"^COPY --chown=airflow:0 (\S+)", DOCKERFILE, re.MULTILINE)
    kept = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == kept
    assert [name for name in copied if not (PROJECT / name).exists()] == []


@pytest.mark.parametrize("name", [n for n, s in SERVICES.items() if s.get("restart") == "unless-stopped"])
def test_everything_that_stays_up_has_a_health_check(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] == "CMD" or check["test"][1].startswith("exec "), "a shell's child outlives its time"
    assert "airflow jobs check" not in check["test"][-1] or check["interval"] == "120s"


def test_what_is_waited_for_can_say_that_it_is_ready() -> None:
    for name, service in SERVICES.items():
        for other, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{name} waits for {other}, which has no health check"
            else:
                assert wanted["condition"] == "service_completed_successfully"
                assert SERVICES[other].get("restart", "no") == "no", f"{name} waits for the end of {other}"


def test_volumes_are_declared() -> None:
    mounted = {volume.split(":")[0] for s in SERVICES.values() for volume in s.get("volumes", ())}
    assert {name for name in mounted if not name.startswith("./")} == set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", AIRFLOW)
def test_what_users_add_is_mounted_and_cannot_be_written(name: str) -> None:
    mounted = {volume for volume in SERVICES[name]["volumes"] if volume.startswith("./")}
    assert mounted == {f"./{folder}:/opt/airflow/{folder}:ro" for folder in ("dags", "plugins", "include/collections")}
    assert all((PROJECT / volume.split(":")[0]).is_dir() for volume in mounted)


def test_the_store_that_comes_along_can_be_left_out() -> None:
    left_out = {name for name, service in SERVICES.items() if service.get("profiles")}
    assert left_out == {"minio", "minio-init"}
    for name in set(SERVICES) - left_out:
        waits = SERVICES[name].get("depends_on", {})
        assert all(waits[other].get("required") is False for other in left_out & set(waits)), name


def test_the_image_has_the_command(tmp_path: Path) -> None:
    [made] = re.findall(r"&& (printf .*) > /usr/local/bin/tidemark \\$", DOCKERFILE, re.MULTILINE)
    script = tmp_path / "tidemark"
    script.write_text(subprocess.run(["sh", "-c", made], capture_output=True, text=True, check=True).stdout)
    said = subprocess.run(["sh", script, "status", "--help"], capture_output=True, text=True, check=True).stdout
    assert "tidemark status [OPTIONS]" in said


def test_images_are_pinned() -> None:
    assert [s["image"] for s in SERVICES.values() if not re.search(r":[^:/]+$", s["image"])] == []
    assert "latest" not in TEXT


def test_only_the_ui_is_reachable_and_only_from_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"airflow-apiserver": ["127.0.0.1:${AIRFLOW_PORT:-8080}:8080"]}


def test_no_secret_stands_in_a_file() -> None:
    template = dict(re.findall(r"^([A-Z_0-9]+)=(.*)$", (PROJECT / ".env.example").read_text(), re.MULTILINE))
    assert template.pop("COMPOSE_PROFILES") == "minio"
    assert set(template.values()) == {""}
    required = set(re.findall(r"\$\{(\w+):\?", TEXT))
    assert required == set(template), "what compose requires is what the template asks for"
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD$|SECRET|ACCESS_KEY|FERNET", key):
                assert str(value).startswith("${"), f"{key} is written out"
